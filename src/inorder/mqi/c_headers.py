"""Headers for C programs, generated from the tables of constants, structures and functions.

`cmqc.h` has nearly everything; the others include it. They suffice for C programs and to build pymqi.

Rules: M-6 of *mqi*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ..mq.words import LEVEL
from . import layouts
from .constants import of_headers
from .functions import FUNCTIONS
from .layouts import Layout, StructureField

# The version that a structure's initializer has in C, where it is not the oldest.
CD_VERSION: Final = 6
CHANNEL: Final = "CD"
# Constants that only headers need: the ranges of attributes, and the constants of the MQAI, whose functions answer
# 2298.
RANGES: Final = {"MQIA_FIRST": 1, "MQIA_LAST": 2000, "MQCA_FIRST": 2001, "MQCA_LAST": 4000}
BAGS: Final = {
    "MQHB_UNUSABLE_HBAG": -1,
    "MQHB_NONE": -2,
    "MQCBO_NONE": 0,
    "MQCBO_ADMIN_BAG": 1,
    "MQBL_NULL_TERMINATED": -1,
    "MQHA_BAG_HANDLE": 4001,
    "MQIASY_COMP_CODE": -6,
    "MQIASY_REASON": -7,
    "MQIND_NONE": -1,
    "MQIND_ALL": -2,
    "MQSEL_ANY_SELECTOR": -30001,
    "MQSEL_ANY_USER_SELECTOR": -30002,
    "MQSEL_ANY_SYSTEM_SELECTOR": -30003,
    "MQSEL_ALL_SELECTORS": -30001,
    "MQSEL_ALL_USER_SELECTORS": -30002,
    "MQSEL_ALL_SYSTEM_SELECTORS": -30003,
    "MQIT_INTEGER": 1,
    "MQIT_STRING": 2,
    "MQITEM_BYTE_STRING": 4,
}
CHARACTERS: Final = (4, 8, 12, 16, 20, 28, 32, 48, 64, 128, 256, 264, 1024)
BYTES: Final = (4, 8, 16, 24, 32, 40, 48, 128)
NOTHING: Final = {"MI": 24, "CI": 24, "GI": 24, "ACT": 32, "SID": 40, "MTOK": 16, "CT": 128}  # MQxx_NONE, in bytes
TEXTS: Final = ("MQCC", "MQRC", "MQRCCF", "MQFB", "MQCMD")  # prefixes whose names cmqstrc.h tells
WORDS: Final = {
    "i": "MQLONG", "q": "MQHMSG", "P": "MQPTR", "V": "MQCHARV", "1c": "MQCHAR", "MsgDesc": "MQMD1",
    "SecurityParmsPtr": "struct tagMQCSP *", "SSLConfigPtr": "struct tagMQSCO *",
    "BalanceParmsPtr": "struct tagMQBNO *", "CCDTUrlPtr": "PMQCHAR",
}  # fmt: skip
"""The types of C for the types of layouts.txt, and for fields that have one of their own."""

TYPES: Final = """
#define MQENTRY
#define MQPOINTER *
typedef unsigned char MQBYTE, *PMQBYTE, **PPMQBYTE, MQUINT8, *PMQUINT8;
typedef char MQCHAR, *PMQCHAR, **PPMQCHAR;
typedef signed char MQINT8, *PMQINT8;
typedef int16_t MQINT16, *PMQINT16, MQSHORT;
typedef uint16_t MQUINT16, *PMQUINT16, MQUSHORT;
typedef int32_t MQLONG, *PMQLONG, **PPMQLONG, MQINT32, *PMQINT32, MQBOOL, *PMQBOOL, MQPID, *PMQPID, MQTID, *PMQTID;
typedef uint32_t MQULONG, *PMQULONG, MQUINT32, *PMQUINT32;
typedef int64_t MQINT64, *PMQINT64;
typedef uint64_t MQUINT64, *PMQUINT64;
typedef float MQFLOAT32, *PMQFLOAT32;
typedef double MQFLOAT64, *PMQFLOAT64;
typedef void *MQPTR, **PMQPTR, *PMQVOID, **PPMQVOID, *MQHCONFIG;
typedef MQLONG MQHCONN, *PMQHCONN, **PPMQHCONN, MQHOBJ, *PMQHOBJ, **PPMQHOBJ, MQHBAG, *PMQHBAG, **PPMQHBAG;
typedef MQINT64 MQHMSG, *PMQHMSG, **PPMQHMSG;
typedef struct tagMQCHARV {
    MQPTR VSPtr;
    MQLONG VSOffset, VSBufSize, VSLength, VSCCSID;
} MQCHARV, *PMQCHARV, **PPMQCHARV;
#define MQCHARV_DEFAULT (MQPTR)0, 0, 0, 0, -3
#define MQPROP_INQUIRE_ALL (MQPTR)(char *)"%", 0, 0, 1, -3
#define MQPROP_INQUIRE_ALL_USR (MQPTR)(char *)"usr.%", 0, 0, 5, -3
#define MQC_INCLUDED
#define MQ_64_BIT
#define MQRFH_VERSION_2 (2)
#define MQTMC_STRUC_ID "TMC "
#define MQTMC_VERSION_1 "   1"
#define MQTMC_VERSION_2 "   2"
#define MQTMC_CURRENT_VERSION "   2"
"""
CALLBACK: Final = """
typedef void MQENTRY MQCB_FUNCTION(MQHCONN, PMQVOID, PMQVOID, PMQVOID, PMQCBC);
typedef MQCB_FUNCTION *PMQCB_FUNCTION;
"""

PCF: Final = """
typedef struct tagMQCFH {
    MQLONG Type, StrucLength, Version, Command, MsgSeqNumber, Control, CompCode, Reason, ParameterCount;
} MQCFH, *PMQCFH;
typedef struct tagMQCFIN { MQLONG Type, StrucLength, Parameter, Value; } MQCFIN, *PMQCFIN;
typedef struct tagMQCFIL { MQLONG Type, StrucLength, Parameter, Count, Values[1]; } MQCFIL, *PMQCFIL;
typedef struct tagMQCFST {
    MQLONG Type, StrucLength, Parameter, CodedCharSetId, StringLength;
    MQCHAR String[1];
} MQCFST, *PMQCFST;
typedef struct tagMQCFSL {
    MQLONG Type, StrucLength, Parameter, CodedCharSetId, Count, StringLength;
    MQCHAR Strings[1];
} MQCFSL, *PMQCFSL;
typedef struct tagMQCFBS {
    MQLONG Type, StrucLength, Parameter, StringLength;
    MQBYTE String[1];
} MQCFBS, *PMQCFBS;
typedef struct tagMQCFGR { MQLONG Type, StrucLength, Parameter, ParameterCount; } MQCFGR, *PMQCFGR;
typedef struct tagMQCFIF { MQLONG Type, StrucLength, Parameter, Operator, FilterValue; } MQCFIF, *PMQCFIF;
typedef struct tagMQCFSF {
    MQLONG Type, StrucLength, Parameter, Operator, CodedCharSetId, FilterValueLength;
    MQCHAR FilterValue[1];
} MQCFSF, *PMQCFSF;
typedef struct tagMQCFBF {
    MQLONG Type, StrucLength, Parameter, Operator, FilterValueLength;
    MQBYTE FilterValue[1];
} MQCFBF, *PMQCFBF;
typedef struct tagMQCFIN64 {
    MQLONG Type, StrucLength, Parameter, Reserved;
    MQINT64 Value;
} MQCFIN64, *PMQCFIN64;
typedef struct tagMQCFIL64 {
    MQLONG Type, StrucLength, Parameter, Count;
    MQINT64 Values[1];
} MQCFIL64, *PMQCFIL64;
typedef struct tagMQEPH {
    MQCHAR4 StrucId;
    MQLONG Version, StrucLength, Encoding, CodedCharSetId;
    MQCHAR8 Format;
    MQLONG Flags;
    MQCFH PCFHeader;
} MQEPH, *PMQEPH;
#define MQCFH_STRUC_LENGTH (36)
#define MQCFIN_STRUC_LENGTH (16)
#define MQCFIL_STRUC_LENGTH_FIXED (16)
#define MQCFST_STRUC_LENGTH_FIXED (20)
#define MQCFSL_STRUC_LENGTH_FIXED (24)
#define MQCFBS_STRUC_LENGTH_FIXED (16)
#define MQCFGR_STRUC_LENGTH (16)
#define MQCFIF_STRUC_LENGTH (20)
#define MQCFSF_STRUC_LENGTH_FIXED (24)
#define MQCFBF_STRUC_LENGTH_FIXED (20)
#define MQCFIN64_STRUC_LENGTH (24)
#define MQCFIL64_STRUC_LENGTH_FIXED (16)
#define MQEPH_STRUC_LENGTH_FIXED (68)
#define MQEPH_STRUC_ID "EPH "
#define MQCFH_DEFAULT 1, 36, 1, 0, 1, 1, 0, 0, 0
#define MQCFIN_DEFAULT 3, 16, 0, 0
#define MQCFIL_DEFAULT 5, 16, 0, 0, {0}
#define MQCFST_DEFAULT 4, 20, 0, 0, 0, {0}
#define MQCFSL_DEFAULT 6, 24, 0, 0, 0, 0, {0}
#define MQCFBS_DEFAULT 9, 16, 0, 0, {0}
#define MQCFGR_DEFAULT 20, 16, 0, 0
#define MQCFIF_DEFAULT 13, 20, 0, 0, 0
#define MQCFSF_DEFAULT 14, 24, 0, 0, 0, 0, {0}
#define MQCFBF_DEFAULT 15, 20, 0, 0, 0, {0}
#define MQCFIN64_DEFAULT 23, 24, 0, 0, 0
#define MQCFIL64_DEFAULT 25, 16, 0, 0, {0}
#define MQEPH_DEFAULT {'E', 'P', 'H', ' '}, 1, 68, 0, 0, {0}, 0, {MQCFH_DEFAULT}
"""


def write(folder: Path) -> list[Path]:
    """Writes the headers into a folder, which it makes, and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in headers().items():
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return paths


def headers() -> dict[str, str]:
    """The text of each header, by its name."""
    of = {name: layouts.layout(name) for name in layouts.names()}
    main = [TYPES, *_arrays(), *_constants()]
    main += _first_descriptor(of["MD"])
    main += [text for name, each in of.items() if name != CHANNEL for text in _structure(each)]
    main += [CALLBACK, *(f"void MQENTRY {one.name}({one.prototype()});" for one in FUNCTIONS if not one.is_bag)]
    found = {"cmqc.h": _header("cmqc.h", main, "<stdint.h>")}
    parts = {
        "cmqxc.h": list(_structure(of[CHANNEL])),
        "cmqcfc.h": [PCF],
        "cmqbc.h": [f"void MQENTRY {one.name}({one.prototype()});" for one in FUNCTIONS if one.is_bag],
        "cmqstrc.h": [line for prefix in TEXTS for line in _texts(prefix)],
    }
    return found | {name: _header(name, lines, '"cmqc.h"') for name, lines in parts.items()}


def _header(name: str, lines: list[str], included: str) -> str:
    guard = f"INORDER_{name.replace('.', '_').upper()}"
    about = f"/* {name}: made by inorder from its tables, for programs that call the MQI. */"
    opened = '#ifdef __cplusplus\nextern "C" {\n#endif'
    closed = "#ifdef __cplusplus\n}\n#endif\n#endif"
    return "\n".join([about, f"#ifndef {guard}\n#define {guard}\n#include {included}", opened, *lines, closed, ""])


def _arrays() -> Iterator[str]:
    for size in CHARACTERS:
        yield f"typedef MQCHAR MQCHAR{size}[{size}], *PMQCHAR{size};"
    for size in BYTES:
        yield f"typedef MQBYTE MQBYTE{size}[{size}], *PMQBYTE{size};"


def _constants() -> Iterator[str]:
    for name, value in {**RANGES, **BAGS, **of_headers()}.items():
        if not name.startswith("MQ"):  # of events alone
            continue
        if isinstance(value, bytes):
            yield from _characters(name, value)
        else:
            signed = (value + 2**31) % 2**32 - 2**31
            yield f"#define {name} ({signed if signed != -(2**31) else '-2147483647 - 1'})"
    for name, size in NOTHING.items():
        yield f'#define MQ{name}_NONE "{_escaped(bytes(size))}"'
        yield f"#define MQ{name}_NONE_ARRAY {_list(bytes(size))}"
    yield f"#define MQCMDL_CURRENT_LEVEL ({LEVEL})"


def _characters(name: str, value: bytes) -> Iterator[str]:
    yield f'#define {name} "{_escaped(value)}"'
    yield f"#define {name}_ARRAY {_list(value)}"


def _escaped(value: bytes) -> str:
    return "".join(chr(one) if one >= 0x20 else f"\\{one:03o}" for one in value)


def _list(value: bytes) -> str:
    return ", ".join(f"'{_escaped(bytes([one]))}'" for one in value)


def _structure(of: Layout) -> Iterator[str]:
    """The structure, its versions, lengths and initializer."""
    name = f"MQ{of.name}"
    if of.identifier:
        yield from _characters(f"{name}_STRUC_ID", of.identifier)
    for version in of.structs:
        yield f"#define {name}_VERSION_{version} {_version(of, version)}"
        yield f"#define {name}_LENGTH_{version} ({of.size(version)})"
    yield f"#define {name}_CURRENT_VERSION {_version(of, of.newest)}"
    yield f"#define {name}_CURRENT_LENGTH ({of.size()})"
    yield _declaration(name, of.members)
    default = "MQCD_CLIENT_CONN_DEFAULT" if of.name == "CD" else f"{name}_DEFAULT"
    chosen = CD_VERSION if of.name == "CD" else of.oldest
    yield f"#define {default} {', '.join(_initial(of, each, chosen) for each in of.members)}"


def _first_descriptor(of: Layout) -> Iterator[str]:
    """MQMD1, which MQXQH has in it, and MQMD2, MQ's other name of MQMD."""
    members = [each for each in of.members if each.version <= 1]
    yield _declaration("MQMD1", members)
    yield f"#define MQMD1_DEFAULT {', '.join(_initial(of, each, 1) for each in members)}"
    yield "#define MQMD2 MQMD"
    yield "#define PMQMD2 PMQMD"
    yield f"#define MQMD2_DEFAULT {', '.join(_initial(of, each, 2) for each in of.members)}"


def _declaration(name: str, members: Iterable[StructureField]) -> str:
    fields = "\n".join(f"    {_declared(each)};" for each in members)
    return f"typedef struct tag{name} {{\n{fields}\n}} {name}, *P{name}, **PP{name};"


def _version(of: Layout, version: int) -> str:
    return f'"{version:4d}"' if of.name == "TMC2" else f"({version})"


def _declared(each: StructureField) -> str:
    if word := WORDS.get(each.name) or WORDS.get(each.code):
        return f"{word} {each.name}"
    kind = "MQBYTE" if each.code[-1] == "b" else "MQCHAR"
    return f"{kind} {each.name}[{each.code[:-1]}]"


def _initial(of: Layout, each: StructureField, version: int) -> str:
    if each.code == "V":
        return "{MQCHARV_DEFAULT}"
    if each.name == "MsgDesc":
        return "{MQMD1_DEFAULT}"
    value = each.default
    if each.code == "1c":
        return _list(value)
    if each.name == "Version":
        value = b"%4d" % version if of.name == "TMC2" else version
    if isinstance(value, bytes):
        kept = value.rstrip(b"\0")
        return f"{{{_list(kept)}}}" if kept else "{0}"
    return str(value)


def _texts(prefix: str) -> Iterator[str]:
    """A function that gives the name of a constant: MQRC_STR(2033) is "MQRC_NO_MSG_AVAILABLE"."""
    names: dict[int, str] = {}
    for name, value in of_headers().items():
        if name.startswith(f"{prefix}_") and not name.endswith(("_FIRST", "_LAST")):
            names.setdefault(value, name)
    yield f"static inline char *{prefix}_STR(MQLONG v) {{\n    switch (v) {{"
    for value, name in sorted(names.items()):
        yield f'    case {value}: return (char *)"{name}";'
    yield '    default: return (char *)"";\n    }\n}'
