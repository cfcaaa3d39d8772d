"""A store of another machine, behind `inorder serve`: the client's side of spec/remote.md."""

from .address import Address
from .store import RemoteStore

__all__ = ["Address", "RemoteStore"]
