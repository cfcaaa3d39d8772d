"""The store of a server for programs on other machines: the server's side of spec/remote.md."""

from __future__ import annotations

from .endpoint import StoreEndpoint

__all__ = ["StoreEndpoint"]
