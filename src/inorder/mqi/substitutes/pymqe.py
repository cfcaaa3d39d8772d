"""A substitute for the C module of the package `pymqi`, in Python: the same functions and results."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from .. import layouts, verbs
from ..inquiring import INTEGERS
from .calls import *  # noqa: F403 - the same functions
from .calls import Result, WrongSize, inquired

__version__ = "1.12.10"
__mqlevels__ = ("5.0", "5.1", "5.2", "5.3", "6.0", "7.0", "7.1", "7.5", "8.0.0", "8.0.1")
__mqbuild__ = "client"
globals()["pymqe.error"] = WrongSize

LONGEST_ATTRIBUTE = 256
USER_AND_PASSWORD = 1  # MQCSP_AUTH_USER_ID_AND_PWD
NOT_SUPPORTED = 2, 2298


def MQCONNX(
    name: bytes, options: int, cd: bytes | None, login: Mapping[str, bytes | str], sco: bytes | None = None
) -> Result:
    """Connects with options. Returns: hconn."""
    csp = None
    if login:
        user, password = (
            text.encode() if isinstance(text, str) else text for text in (login["user"], login["password"])
        )
        texts = ctypes.create_string_buffer(user + password)
        address = ctypes.addressof(texts)
        csp = layouts.layout("CSP").new(
            AuthenticationType=USER_AND_PASSWORD,
            CSPUserIdPtr=address,
            CSPUserIdLength=len(user),
            CSPPasswordPtr=address + len(user),
            CSPPasswordLength=len(password),
        )
    channel, tls = (None if each is None else bytearray(each) for each in (cd, sco))
    return verbs.mqconnx(name, layouts.layout("CNO").new(5, Options=options), channel, csp, tls)


def MQINQ(hconn: int, hobj: int, selector: int) -> Result:
    """Inquires one attribute. Returns: its value."""
    is_integer = selector in INTEGERS
    ints, text, *codes = verbs.mqinq(hconn, hobj, [selector], int(is_integer), 0 if is_integer else LONGEST_ATTRIBUTE)
    value: Any = (ints or [0])[0] if is_integer else bytes(text).partition(b"\0")[0]
    return (value, *codes)


def MQSET(hconn: int, hobj: int, selector: int, value: int | bytes) -> Result:
    """Sets one attribute."""
    ints, text = ([value], b"") if isinstance(value, int) else ([], value)
    return verbs.mqset(hconn, hobj, [selector], ints, text)


def MQINQMP(hconn: int, hmsg: int, options: int, name: bytes | str, pd_options: int, kind: int, most: int) -> Result:
    """Inquires a property. Returns: its value, the length of the value."""
    impo, pd = layouts.layout("IMPO").new(Options=options), layouts.layout("PD").new(Options=pd_options)
    value, length, _, completion, reason = inquired(hconn, hmsg, impo, name, pd, kind, most)
    return value, length, completion, reason


def mqaiExecute(*given: object) -> Result:
    """Would run a command of the MQAI, which is not here: 2298. Programs use PCF messages instead. Returns: a list."""
    del given
    return ([], *NOT_SUPPORTED)
