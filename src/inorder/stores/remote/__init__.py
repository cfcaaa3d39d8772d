"""A store elsewhere, behind `inorder serve`: the client's side.

It is empty, so that a URL is parsed and credentials are found without the libraries of the connection.
"""

from __future__ import annotations
