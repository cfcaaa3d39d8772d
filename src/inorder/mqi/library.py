"""The callbacks of the library: a verb for each function that `stub.c` exports, over pointers.

The library imports this module in the process of the program and calls `register` once.

Rules: M-2, M-3, M-9 of *mqi*.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from ..model.attribute import NAME_LENGTH_MAX as NAME_LENGTH
from ..model.properties import NAME_LENGTH_MAX
from . import constants as mq
from . import layouts, verbs
from .functions import FUNCTIONS
from .inquiring import SELECTORS_MAX
from .layouts import NUL_TERMINATED, Charv, LayoutError, text_at
from .refusals import MQCC_FAILED

_log = logging.getLogger("inorder.mqi")


Answer = tuple[int, int]
Callback = Callable[[int, Any, Any, Any, Any], None]

_WIDE: Final = {"MQHMSG": ctypes.c_int64}
_WRITABLE: Final = 0x200  # PyBUF_WRITE
_CONSUMER: Final = ctypes.CFUNCTYPE(None, ctypes.c_int, *[ctypes.c_void_p] * 4)


def register(table: int, names: int) -> None:
    """Fills the table of a library with callbacks.

    Args:
        table: the address of its table of pointers.
        names: the address of the names of its functions, in the order of the table, each with a blank after it.
    """
    functions = ctypes.string_at(names).decode().split()
    places = (ctypes.c_void_p * len(functions)).from_address(table)
    known = {each.name: each for each in FUNCTIONS}
    for place, name in enumerate(functions):
        kinds = (kind for kind, _ in known[name].parameters)
        types = [ctypes.c_void_p if kind.startswith("P") else _WIDE.get(kind, ctypes.c_int) for kind in kinds]
        callback = ctypes.CFUNCTYPE(ctypes.c_void_p, *types)(_guarded(_DOORS.get(name, _unsupported)))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))  # the library may call it until the process ends
        places[place] = ctypes.cast(callback, ctypes.c_void_p).value


def _guarded(door: Callable[..., Answer]) -> Callable[..., int]:
    """A function of the library: writes CompCode and Reason, and returns the address of an exception to raise in the
    program, or 0.

    The library itself has set them to 2195.
    """

    def call(*given: Any) -> int:
        try:
            completion, reason = door(*given[:-2])
        except LayoutError as error:
            completion, reason = MQCC_FAILED, error.reason
        except Exception:  # noqa: BLE001 - C code cannot handle it
            _log.exception("%s failed", door.__name__)
            return 0
        except BaseException as error:  # noqa: BLE001 - of an interrupted program, which gets it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
            return id(error)
        _put_int(given[-2], completion)
        _put_int(given[-1], reason)
        return 0

    return call


def _unsupported(*given: object) -> Answer:
    del given
    return MQCC_FAILED, mq.MQRC_FUNCTION_NOT_SUPPORTED


# ---- memory of the program

_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)


@cache
def _size(name: str) -> int:
    return layouts.layout(name).size()


def _structure(address: int | None, name: str) -> Any:
    """The structure at an address, as long as its newest version: its own version says how much of it exists."""
    return None if address is None else _view(address, _size(name), _WRITABLE)


def _bytes(address: int | None, length: int) -> Any:
    """Writable memory of this length; empty where there is none."""
    return _view(address, length, _WRITABLE) if address is not None and length > 0 else bytearray()


def _put_int(address: int | None, value: int) -> None:
    if address is not None:
        ctypes.c_int32.from_address(address).value = value


def _with_int(address: int | None, answer: tuple[int, int, int]) -> Answer:
    """Writes the integer of a verb's answer; returns the rest of it."""
    _put_int(address, answer[0])
    return answer[1:]


def _int(address: int | None) -> int:
    """The handle at an address; 0, which is none, without an address."""
    return 0 if address is None else ctypes.c_int32.from_address(address).value


def _put_handle(address: int, value: int) -> None:
    ctypes.c_int64.from_address(address).value = value


_libc_strnlen = ctypes.CDLL(None).strnlen
_libc_strnlen.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc_strnlen.restype = ctypes.c_size_t


def _name(address: int | None) -> bytes:
    """The name of a queue manager: 48 characters, or fewer up to a NUL."""
    return b"" if address is None else ctypes.string_at(address, _libc_strnlen(address, NAME_LENGTH))


def _charv(address: int | None) -> bytes:
    """The text of the MQCHARV at an address. Raises: LayoutError 2513."""
    if address is None:
        return b""
    pointer = ctypes.c_void_p.from_address(address).value or 0
    rest = (ctypes.c_int32 * 4).from_address(address + ctypes.sizeof(ctypes.c_void_p))
    return text_at(Charv(pointer, *rest), address, NAME_LENGTH_MAX, mq.MQRC_PROPERTY_NAME_LENGTH_ERR)


def _integers(address: int | None, count: int) -> list[int]:
    return list((ctypes.c_int32 * count).from_address(address)) if address is not None and count > 0 else []


def _bad_buffer(address: int | None, length: int) -> Answer | None:
    if length < 0:
        return MQCC_FAILED, mq.MQRC_BUFFER_LENGTH_ERROR
    return (MQCC_FAILED, mq.MQRC_BUFFER_ERROR) if address is None and length else None


# ---- connections and units of work


def _conn(name: int | None, hconn: int) -> Answer:
    return _with_int(hconn, verbs.mqconn(_name(name)))


def _connx(name: int | None, cno: int | None, hconn: int) -> Answer:
    return _with_int(hconn, verbs.mqconnx(_name(name), _structure(cno, "CNO")))


def _disc(hconn: int) -> Answer:
    answer = verbs.mqdisc(_int(hconn))
    if answer[0] != MQCC_FAILED:
        _put_int(hconn, -1)  # MQHC_UNUSABLE_HCONN
    return answer


def _begin(hconn: int, bo: int | None) -> Answer:
    return verbs.mqbegin(hconn, _structure(bo, "BO"))


# ---- objects and messages


def _open(hconn: int, od: int | None, options: int, hobj: int) -> Answer:
    return _with_int(hobj, verbs.mqopen(hconn, _structure(od, "OD"), options))


def _close(hconn: int, hobj: int, options: int) -> Answer:
    answer = verbs.mqclose(hconn, _int(hobj), options)
    if answer[0] != MQCC_FAILED:
        _put_int(hobj, -1)  # MQHO_UNUSABLE_HOBJ
    return answer


def _put(hconn: int, hobj: int, md: int | None, pmo: int | None, length: int, buffer: int | None) -> Answer:
    return _bad_buffer(buffer, length) or verbs.mqput(
        hconn, hobj, _structure(md, "MD"), _structure(pmo, "PMO"), _bytes(buffer, length)
    )


def _put1(hconn: int, od: int | None, md: int | None, pmo: int | None, length: int, buffer: int | None) -> Answer:
    return _bad_buffer(buffer, length) or verbs.mqput1(
        hconn, _structure(od, "OD"), _structure(md, "MD"), _structure(pmo, "PMO"), _bytes(buffer, length)
    )


def _get(
    hconn: int, hobj: int, md: int | None, gmo: int | None, length: int, buffer: int | None, data_length: int | None
) -> Answer:
    return _bad_buffer(buffer, length) or _with_int(
        data_length,
        verbs.mqget(hconn, hobj, _structure(md, "MD"), _structure(gmo, "GMO"), _bytes(buffer, length)),
    )


def _bad_arrays(
    count: int, selectors: int | None, integers: int, ints: int | None, characters: int, chars: int | None
) -> Answer | None:
    for is_wrong, reason in (
        (count < 0, mq.MQRC_SELECTOR_COUNT_ERROR),
        (count > SELECTORS_MAX, mq.MQRC_SELECTOR_LIMIT_EXCEEDED),
        (integers < 0, mq.MQRC_INT_ATTR_COUNT_ERROR),
        (characters < 0, mq.MQRC_CHAR_ATTR_LENGTH_ERROR),
        (count and selectors is None, mq.MQRC_SELECTOR_ERROR),
        (integers and ints is None, mq.MQRC_INT_ATTRS_ARRAY_ERROR),
        (characters and chars is None, mq.MQRC_CHAR_ATTRS_ERROR),
    ):
        if is_wrong:
            return MQCC_FAILED, reason
    return None


def _inq(
    hconn: int, hobj: int, count: int, selectors: int, integers: int, ints: int, characters: int, chars: int
) -> Answer:
    if bad := _bad_arrays(count, selectors, integers, ints, characters, chars):
        return bad
    values, text, completion, reason = verbs.mqinq(hconn, hobj, _integers(selectors, count), integers, characters)
    for place, value in enumerate(values[:integers]):
        _put_int(ints + 4 * place, value)
    _bytes(chars, characters)[: len(text)] = text
    return completion, reason


def _set(
    hconn: int, hobj: int, count: int, selectors: int, integers: int, ints: int, characters: int, chars: int
) -> Answer:
    return _bad_arrays(count, selectors, integers, ints, characters, chars) or verbs.mqset(
        hconn, hobj, _integers(selectors, count), _integers(ints, integers), bytes(_bytes(chars, characters))
    )


def _stat(hconn: int, kind: int, status: int | None) -> Answer:
    return verbs.mqstat(hconn, kind, _structure(status, "STS"))


def _sub(hconn: int, sd: int | None, hobj: int, hsub: int) -> Answer:
    queue, found, completion, reason = verbs.mqsub(hconn, _structure(sd, "SD"), _int(hobj))
    _put_int(hobj, queue)
    _put_int(hsub, found)
    return completion, reason


def _subrq(hconn: int, hsub: int, action: int, sro: int | None) -> Answer:
    return verbs.mqsubrq(hconn, hsub, action, _structure(sro, "SRO"))


# ---- callbacks of the program


def _cb(hconn: int, operation: int, cbd: int | None, hobj: int, md: int | None, gmo: int | None) -> Answer:
    description = _structure(cbd, "CBD")
    try:
        callback = None if description is None else _callback(layouts.layout("CBD").read(description))
    except (OSError, AttributeError):
        _log.exception("MQCB: the function of CallbackName was not found")
        return MQCC_FAILED, mq.MQRC_CALLBACK_LINK_ERROR
    return verbs.mqcb(hconn, operation, description, hobj, _structure(md, "MD"), _structure(gmo, "GMO"), callback)


def _callback(description: Any) -> Callback | None:
    """The program's function, by its address or as `library(function)` in CallbackName."""
    address = description.CallbackFunction
    name = description.CallbackName.rstrip(b" \0").decode()
    if not address and name:
        library, _, function = name.rstrip(")").rpartition("(")
        address = ctypes.cast(ctypes.CDLL(library)[function], ctypes.c_void_p).value
    if not address:
        return None
    consumer = _CONSUMER(address)

    def call(hconn: int, md: Any, gmo: Any, data: Any, cbc: Any) -> None:
        consumer(hconn, *(_address(each) for each in (md, gmo, data, cbc)))

    return call


def _address(buffer: Any) -> Any:
    """A pointer to a buffer; read-only bytes are passed as they are, which C code must not change."""
    if buffer is None or isinstance(buffer, bytes):
        return buffer
    return ctypes.cast((ctypes.c_char * len(buffer)).from_buffer(buffer), ctypes.c_void_p)


def _ctl(hconn: int, operation: int, ctlo: int | None) -> Answer:
    return verbs.mqctl(hconn, operation, _structure(ctlo, "CTLO"))


# ---- message handles and properties


def _crtmh(hconn: int, cmho: int | None, hmsg: int) -> Answer:
    found, completion, reason = verbs.mqcrtmh(hconn, _structure(cmho, "CMHO"))
    _put_handle(hmsg, found)
    return completion, reason


def _dltmh(hconn: int, hmsg: int, dmho: int | None) -> Answer:
    answer = verbs.mqdltmh(hconn, ctypes.c_int64.from_address(hmsg).value, _structure(dmho, "DMHO"))
    if answer[0] != MQCC_FAILED:
        _put_handle(hmsg, -1)  # MQHM_UNUSABLE_HMSG
    return answer


def _setmp(
    hconn: int, hmsg: int, smpo: int | None, name: int | None, pd: int | None, kind: int, length: int, value: int | None
) -> Answer:
    given = ctypes.string_at(value) if value and length == NUL_TERMINATED else bytes(_bytes(value, length))
    return verbs.mqsetmp(hconn, hmsg, _structure(smpo, "SMPO"), _charv(name), _structure(pd, "PD"), kind, given)


def _inqmp(
    hconn: int,
    hmsg: int,
    impo: int | None,
    name: int | None,
    pd: int | None,
    kind: int,
    length: int,
    value: int | None,
    data_length: int | None,
) -> Answer:
    found, size, _, completion, reason = verbs.mqinqmp(
        hconn, hmsg, _structure(impo, "IMPO"), _charv(name), _structure(pd, "PD"), _int(kind), _bytes(value, length)
    )
    _put_int(kind, found)
    _put_int(data_length, size)
    return completion, reason


def _dltmp(hconn: int, hmsg: int, dmpo: int | None, name: int | None) -> Answer:
    return verbs.mqdltmp(hconn, hmsg, _structure(dmpo, "DMPO"), _charv(name))


def _bufmh(
    hconn: int, hmsg: int, bmho: int | None, md: int | None, length: int, buffer: int | None, data_length: int | None
) -> Answer:
    return _with_int(
        data_length,
        verbs.mqbufmh(hconn, hmsg, _structure(bmho, "BMHO"), _structure(md, "MD"), _bytes(buffer, length)),
    )


def _mhbuf(
    hconn: int,
    hmsg: int,
    mhbo: int | None,
    name: int | None,
    md: int | None,
    length: int,
    buffer: int | None,
    data_length: int | None,
) -> Answer:
    answer = verbs.mqmhbuf(
        hconn, hmsg, _structure(mhbo, "MHBO"), _charv(name), _structure(md, "MD"), _bytes(buffer, length)
    )
    return _with_int(data_length, answer)


_DOORS: Final[dict[str, Callable[..., Answer]]] = {
    "MQBACK": verbs.mqback,
    "MQBEGIN": _begin,
    "MQBUFMH": _bufmh,
    "MQCB": _cb,
    "MQCLOSE": _close,
    "MQCMIT": verbs.mqcmit,
    "MQCONN": _conn,
    "MQCONNX": _connx,
    "MQCRTMH": _crtmh,
    "MQCTL": _ctl,
    "MQDISC": _disc,
    "MQDLTMH": _dltmh,
    "MQDLTMP": _dltmp,
    "MQGET": _get,
    "MQINQ": _inq,
    "MQINQMP": _inqmp,
    "MQMHBUF": _mhbuf,
    "MQOPEN": _open,
    "MQPUT": _put,
    "MQPUT1": _put1,
    "MQSET": _set,
    "MQSETMP": _setmp,
    "MQSTAT": _stat,
    "MQSUB": _sub,
    "MQSUBRQ": _subrq,
}
