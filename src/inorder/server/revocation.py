"""Lists of client certificates that were revoked: what a list must be for the server to use it.

OpenSSL compares each client certificate with the list of its signer, and takes none of a signer whose list is missing
or has expired. A server with such a list would refuse all its clients, each with an error of TLS that says little. So
the lists are read here first, as far as that needs: whose they are, from when to when they count, and which
certificates are on them (RFC 5280, 5.1). OpenSSL looks at a certificate once, when its connection begins. Connections
that are open are compared with the lists here.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, NamedTuple

from ..errors import CallerError

BEGIN, END = "-----BEGIN X509 CRL-----", "-----END X509 CRL-----"
INTEGER, UTC_TIME, TIME, SEQUENCE, VERSION = 0x02, 0x17, 0x18, 0x30, 0xA0
FORMS: Final = {UTC_TIME: "%y%m%d%H%M%SZ", TIME: "%Y%m%d%H%M%SZ"}


class Part(NamedTuple):
    """A value in DER: its tag, what is in it, and all of it."""

    tag: int
    inner: bytes
    whole: bytes


Name = tuple[tuple[tuple[bytes, bytes], ...], ...]
"""Of a signer: the parts of its name, each a type and a value in small letters, whatever kind of string it is."""


class Mark(NamedTuple):
    """What names a certificate: who signed it, and its serial number."""

    issuer: Name
    serial: int


class RevocationList(NamedTuple):
    """Args: begins, ends: when it counts; `ends` is None if it does not say; revoked: what is on it."""

    issuer: Name
    begins: datetime
    ends: datetime | None
    revoked: frozenset[Mark]


def check(path: Path, authorities: Path, now: datetime) -> frozenset[Mark]:
    """What is on the lists of a file.

    Raises: CallerError, they are not lists that count now, of those who sign client certificates.
    """
    try:
        lists = [read(one) for one in _blocks(path.read_text(encoding="ascii"))]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(path)
    except (OSError, ValueError, IndexError) as error:  # ssl.SSLError is an OSError
        raise CallerError(f"--client-crl {path} has no revocation lists in PEM: {error}") from None
    if not lists:
        raise CallerError(f"--client-crl {path} has no revocation list in PEM ({BEGIN})")
    context.load_verify_locations(authorities)
    subjects = {subject_in(one) for one in context.get_ca_certs(binary_form=True)}
    for number, one in enumerate(lists, 1):
        which = f"--client-crl {path}: list {number}"
        if one.issuer not in subjects:
            raise CallerError(f"{which} was not issued by any CA in --client-ca {authorities}")
        if now < one.begins:
            raise CallerError(f"{which} is not valid before {one.begins:%Y-%m-%d %H:%M:%S} UTC")
        if one.ends is not None and one.ends <= now:
            raise CallerError(f"{which} has expired on {one.ends:%Y-%m-%d at %H:%M:%S} UTC: get a new one")
    return frozenset().union(*(one.revoked for one in lists))


def read(data: bytes) -> RevocationList:
    """A list in DER. Raises: ValueError, IndexError, it is not one."""
    fields = [*_parts(_inner(_inner(data)))]
    if fields[0].tag == INTEGER:  # the version
        fields = fields[1:]
    _, signer, begins, *more = fields
    issuer, ends = _name(signer), None
    if more and more[0].tag in FORMS:
        ends = _time(more.pop(0))
    entries = _parts(more[0].inner) if more and more[0].tag == SEQUENCE else ()
    revoked = frozenset(Mark(issuer, _number(next(_parts(one.inner)))) for one in entries)
    return RevocationList(issuer, _time(begins), ends, revoked)


def mark_of(certificate: bytes) -> Mark:
    """What names a certificate in DER. Raises: ValueError, IndexError."""
    serial, _, issuer, *_ = _fields_of(certificate)
    return Mark(_name(issuer), _number(serial))


def subject_in(certificate: bytes) -> Name:
    """The name of whose a certificate in DER is. Raises: ValueError, IndexError."""
    return _name(_fields_of(certificate)[4])


def _fields_of(certificate: bytes) -> list[Part]:
    """From the serial number on."""
    fields = [*_parts(_inner(_inner(certificate)))]
    return fields[1 if fields[0].tag == VERSION else 0 :]


def _name(part: Part) -> Name:
    """In the form in which OpenSSL compares names: neither capitals nor spaces nor the kind of string count."""
    return tuple(tuple(sorted(map(_one, _parts(each.inner)))) for each in _parts(part.inner))


def _one(part: Part) -> tuple[bytes, bytes]:
    kind, value = _parts(part.inner)
    return kind.inner, b" ".join(value.inner.lower().split())


def _number(part: Part) -> int:
    if part.tag != INTEGER:
        raise ValueError("a serial number is not a number in DER")
    return int.from_bytes(part.inner, "big", signed=True)


def _inner(data: bytes) -> bytes:
    """What is in the first value, a sequence."""
    first = next(_parts(data), None)
    if first is None or first.tag != SEQUENCE:
        raise ValueError("it is not a sequence in DER")
    return first.inner


def _parts(data: bytes) -> Iterator[Part]:
    at = 0
    while at < len(data):
        length, begin = data[at + 1], at + 2
        if length & 0x80:
            begin += length & 0x7F
            length = int.from_bytes(data[at + 2 : begin], "big")
        end = begin + length
        if end > len(data):
            raise ValueError("a value in DER is cut off")
        yield Part(data[at], data[begin:end], data[at:end])
        at = end


def _time(part: Part) -> datetime:
    return datetime.strptime(part.inner.decode("ascii"), FORMS[part.tag]).replace(tzinfo=timezone.utc)


def _blocks(text: str) -> Iterator[bytes]:
    for block in text.split(BEGIN)[1:]:
        body, end, _ = block.partition(END)
        if not end:
            raise ValueError(f"{END} is missing")
        yield ssl.PEM_cert_to_DER_cert(f"-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----")
