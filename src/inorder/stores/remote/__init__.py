"""A store elsewhere, open in `inorder serve`: the client's side.

This module is empty, so that URLs and credentials can be read without the libraries of the connection.
"""

from __future__ import annotations
