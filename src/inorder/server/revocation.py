"""Reads lists of revoked client certificates, and refuses the lists that the server cannot use.

OpenSSL compares each client certificate with its issuer's list, and refuses every certificate of an issuer whose list
is missing or has expired. A server with such a list would refuse all its clients, with a TLS error that does not give
the reason. So the server reads the lists first, and checks issuer and dates. OpenSSL checks a certificate only when its
connection begins; the server compares open connections with the lists itself.
"""

from __future__ import annotations

import re
import ssl
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509

from ..errors import CallerError

BEGIN, END = "-----BEGIN X509 CRL-----", "-----END X509 CRL-----"
LIST: Final = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)

Name = tuple[frozenset[tuple[str, str]], ...]
"""The name of an issuer as OpenSSL compares names: ignoring case, repeated spaces and the kind of string."""


class Mark(NamedTuple):
    """Identifies a certificate: by its issuer, and the serial number that the issuer gave it."""

    issuer: Name
    serial: int


def check(path: Path, authorities: Path, now: datetime) -> frozenset[Mark]:
    """Returns the certificates on the lists in a file.

    Raises: CallerError, if the file has no lists, or one of them is not valid now or not from one of the authorities.
    """
    try:
        text = path.read_text(encoding="ascii")
        lists = [x509.load_pem_x509_crl(one.encode()) for one in LIST.findall(text)]
        if len(lists) != text.count(BEGIN):
            raise ValueError(f"{END} is missing")
        revoked = frozenset(Mark(_name(one.issuer), each.serial_number) for one in lists for each in one)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CallerError(f"--client-crl {path} has no revocation lists in PEM: {error}") from None
    if not lists:
        raise CallerError(f"--client-crl {path} has no revocation list in PEM ({BEGIN})")
    context.load_verify_locations(authorities)
    subjects = {subject_in(one) for one in context.get_ca_certs(binary_form=True)}
    for number, one in enumerate(lists, 1):
        which = f"--client-crl {path}: list {number}"
        begins, ends = one.last_update_utc, one.next_update_utc
        if _name(one.issuer) not in subjects:
            raise CallerError(f"{which} was not issued by any CA in --client-ca {authorities}")
        if now < begins:
            raise CallerError(f"{which} is not valid before {begins:%Y-%m-%d %H:%M:%S} UTC")
        if ends is not None and ends <= now:
            raise CallerError(f"{which} has expired on {ends:%Y-%m-%d at %H:%M:%S} UTC: get a new one")
    return revoked


def mark_of(certificate: bytes) -> Mark:
    """The mark of a certificate in DER. Raises: ValueError, if it is not a certificate."""
    found = x509.load_der_x509_certificate(certificate)
    return Mark(_name(found.issuer), found.serial_number)


def subject_in(certificate: bytes) -> Name:
    """The name of the owner of a certificate in DER. Raises: ValueError, if it is not a certificate."""
    return _name(x509.load_der_x509_certificate(certificate).subject)


def _name(name: x509.Name) -> Name:
    return tuple(frozenset(map(_part, each)) for each in name.rdns)


def _part(one: x509.NameAttribute[str | bytes]) -> tuple[str, str]:
    value = one.value if isinstance(one.value, str) else one.value.hex()
    return one.oid.dotted_string, " ".join(value.lower().split())
