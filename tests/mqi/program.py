"""A program that calls the verbs with bytes: it builds the structures and reads only bytes back."""

from __future__ import annotations

from typing import Any

from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.layouts import layout

Codes = tuple[int, int]
OK: Codes = (0, 0)


class Program:
    """A connection, and the structures of its last call.

    Attributes:
        md, pmo, gmo, od, cno: the structures as the last call left them, decoded.
        data: the data of the last message that it got.
    """

    def __init__(
        self, name: bytes = b"QM1", share: int = 0, version: int = 1, cd: Any = None, csp: Any = None, **cno: Any
    ) -> None:
        options = layout("CNO").new(version, Options=share, **cno)
        self.hconn, *self.connected = verbs.mqconnx(name.ljust(48), options, cd, csp)
        self.cno = layout("CNO").read(options)
        self.md: Any = None
        self.pmo: Any = None
        self.gmo: Any = None
        self.od: Any = None
        self.data = b""
        self.length = 0

    def open(self, name: str, options: int, version: int = 4, **od: Any) -> int:
        """Opens a queue; an error fails the test."""
        hobj, *codes = self.try_open(name, options, version, **od)
        assert codes == [0, 0]
        return hobj

    def try_open(self, name: str, options: int, version: int = 4, **od: Any) -> tuple[int, int, int]:
        buffer = layout("OD").new(version, **{"ObjectName": name.encode(), **od})
        answer = verbs.mqopen(self.hconn, buffer, options)
        self.od = layout("OD").read(buffer)
        return answer

    def put(self, hobj: int, data: bytes, options: int = 0, versions: tuple[int, int] = (2, 3), **md: Any) -> Codes:
        """Puts with MQMD and MQPMO of these versions. Fields that begin with a small `p` belong to MQPMO."""
        about, how = (
            layout("MD").new(versions[0], **_of(md)),
            layout("PMO").new(versions[1], Options=options, **_of(md, "p")),
        )
        codes = verbs.mqput(self.hconn, hobj, about, how, data)
        self.md, self.pmo = layout("MD").read(about), layout("PMO").read(how)
        return codes

    def put_one(self, name: str, data: bytes, options: int = 0, **md: Any) -> Codes:
        od = layout("OD").new(1, ObjectName=name.encode())
        about, how = layout("MD").new(2, **md), layout("PMO").new(1, Options=options)
        codes = verbs.mqput1(self.hconn, od, about, how, data)
        self.md, self.pmo = layout("MD").read(about), layout("PMO").read(how)
        return codes

    def get(
        self, hobj: int, options: int = 0, size: int = 1000, versions: tuple[int, int] = (2, 4), **md: Any
    ) -> Codes:
        """Gets into a buffer of `size` bytes, by default without MatchOptions. A small `g` marks fields of MQGMO."""
        about = layout("MD").new(versions[0], **_of(md))
        how = layout("GMO").new(versions[1], Options=options, **{"MatchOptions": 0, **_of(md, "g")})
        buffer = bytearray(b"\xee" * size)
        self.length, *codes = verbs.mqget(self.hconn, hobj, about, how, buffer)
        self.md, self.gmo = layout("MD").read(about), layout("GMO").read(how)
        self.data = bytes(buffer[: min(size, self.length)])
        assert set(buffer[len(self.data) :]) <= {0xEE}, "the verb wrote beyond the data"
        return codes[0], codes[1]

    def commit(self) -> Codes:
        return verbs.mqcmit(self.hconn)

    def back_out(self) -> Codes:
        return verbs.mqback(self.hconn)

    def close(self, hobj: int, options: int = 0) -> Codes:
        return verbs.mqclose(self.hconn, hobj, options)

    def disconnect(self) -> Codes:
        return verbs.mqdisc(self.hconn)


def _of(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields with this prefix, without it; by default the fields of MQMD, which begin with a capital letter."""
    if prefix:
        return {name[1:]: value for name, value in fields.items() if name[0] == prefix}
    return {name: value for name, value in fields.items() if name[0].isupper()}


INPUT = mq.MQOO_INPUT_SHARED
ALL = INPUT | mq.MQOO_OUTPUT | mq.MQOO_BROWSE | mq.MQOO_INQUIRE | mq.MQOO_SET
