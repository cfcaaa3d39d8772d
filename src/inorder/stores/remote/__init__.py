"""A store of another machine, behind `inorder serve`: the client's side of spec/remote.md."""

from .address import RemoteAddress
from .store import RemoteStore

__all__ = ["RemoteAddress", "RemoteStore"]
