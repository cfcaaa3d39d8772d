"""A substitute for the C module of the package `ibmmq`, in Python: the same functions and results."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from .. import layouts, verbs
from .calls import *  # noqa: F403 - the same functions
from .calls import Result, WrongSize, inquired, structure

try:
    __version__ = version("ibmmq")  # which it compares with its own
except PackageNotFoundError:
    __version__ = "0"
__cmdlevel__ = 940
__mqbuild__ = "common"
_STRUCTURES: Final = """
BNO CBC CBD CD CMHO CNO CSP CTLO DLH DMHO DMPO GMO IMPO MD MDE OD PD PMO SCO SD SMPO SRO STS TM TMC2 XQH
"""
__strucversions__: Final = {"cfh": 3, "cih": 2, "iih": 1, "tmc": 2} | {
    name.lower(): layouts.layout(name).newest for name in _STRUCTURES.split()
}
globals().update(__strucversions__)
globals()["ibmmqc.error"] = WrongSize

Consumer = Callable[[int, bytes | None, bytes | None, bytes | None, bytes], None]
_consumers: Final[list[Consumer]] = []


def MQCONNX(
    name: bytes,
    cno: bytes,
    cd: bytes | None = None,
    csp: bytes | None = None,
    sco: bytes | None = None,
    bno: bytes | None = None,
) -> Result:
    """Connects with options. Returns: hconn."""
    channel, security, tls, balance = (None if each is None else bytearray(each) for each in (cd, csp, sco, bno))
    return verbs.mqconnx(name, bytearray(cno), channel, security, tls, balance)


def MQINQ(
    hconn: int, hobj: int, selectors: list[int], _ints: list[int], integers: int, _strings: int, characters: int
) -> Result:
    """Inquires attributes. Returns: a list of integers, the characters."""
    values, text, *codes = verbs.mqinq(hconn, hobj, selectors, integers, characters)
    return (list(values), bytes(text), *codes)


def MQSET(hconn: int, hobj: int, selectors: list[int], ints: list[int], characters: bytes) -> Result:
    """Sets attributes."""
    return verbs.mqset(hconn, hobj, selectors, ints, characters)


def MQSTAT(hconn: int, kind: int, status: bytes) -> Result:
    """Asks for the status of asynchronous puts. Returns: MQSTS."""
    buffer = structure("STS", status)
    codes = verbs.mqstat(hconn, kind, buffer)
    return (bytes(buffer), *codes)


def MQSUBRQ(hconn: int, hsub: int, action: int, sro: bytes) -> Result:
    """Asks for retained publications. Returns: MQSRO."""
    buffer = structure("SRO", sro)
    codes = verbs.mqsubrq(hconn, hsub, action, buffer)
    return (bytes(buffer), *codes)


def MQCBINIT(consumer: Consumer) -> None:
    """Names the function that every callback calls."""
    _consumers[:] = [consumer]


def MQCB(hconn: int, operation: int, cbd: bytes, hobj: int, md: bytes, gmo: bytes) -> Result:
    """Registers the function of `MQCBINIT` as a callback of an object."""
    buffers = structure("CBD", cbd), structure("MD", md), structure("GMO", gmo)
    return verbs.mqcb(hconn, operation, buffers[0], hobj, buffers[1], buffers[2], _called)


def _called(hconn: int, md: Any, gmo: Any, data: Any, cbc: Any) -> None:
    descriptor, options, message = (None if each is None else bytes(each) for each in (md, gmo, data))
    _consumers[0](hconn, descriptor, options, message, bytes(cbc))


def MQCTL(hconn: int, operation: int, ctlo: bytes) -> Result:
    """Starts and stops callbacks."""
    return verbs.mqctl(hconn, operation, structure("CTLO", ctlo))


def MQDLTMH(hconn: int, hmsg: int, dmho: bytes) -> Result:
    """Deletes a message handle."""
    return verbs.mqdltmh(hconn, hmsg, structure("DMHO", dmho))


def MQINQMP(hconn: int, hmsg: int, impo: bytes, name: bytes, pd: bytes, kind: int, most: int) -> Result:
    """Inquires a property. Returns: its value, the length of the value, and of a wildcard the name, else None."""
    options, description = structure("IMPO", impo), structure("PD", pd)
    value, length, found, *codes = inquired(hconn, hmsg, options, name, description, kind, most)
    return (value, length, found.decode() if b"%" in name else None, *codes)


def MQDLTMP(hconn: int, hmsg: int, dmpo: bytes, name: bytes) -> Result:
    """Deletes a property."""
    return verbs.mqdltmp(hconn, hmsg, structure("DMPO", dmpo), name)


def MQLOGCF(level: int, filename: str | None = None) -> None:
    """Would switch on the trace of the C module, which is not here; Python's logger `inorder.mqi` has the errors."""
    del level, filename
