"""The subject of a client certificate as text, as users are registered with it: RFC 4514, the last part first.

``openssl x509 -noout -subject -nameopt RFC2253,-esc_msb,utf8 -in FILE`` prints the same text after ``subject=``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "commonName": "CN",
        "countryName": "C",
        "domainComponent": "DC",
        "localityName": "L",
        "organizationName": "O",
        "organizationalUnitName": "OU",
        "givenName": "GN",
        "stateOrProvinceName": "ST",
        "streetAddress": "street",
        "surname": "SN",
        "userId": "UID",
    }
)
"""OpenSSL's short names; it writes other names in full."""
ESCAPED: Final = frozenset(',+"\\<>;')


def subject_of(certificate: Mapping[str, Any]) -> str | None:
    """The subject of a certificate from `ssl.SSLSocket.getpeercert`; None if it has none."""
    parts: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    if not parts:
        return None
    return ",".join("+".join(_one(name, value) for name, value in reversed(part)) for part in reversed(parts))


def _one(name: str, value: str) -> str:
    escaped = "".join(_escaped(one) for one in value)
    if value.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if len(value) > 1 and value.endswith(" "):
        escaped = f"{escaped[:-1]}\\ "
    return f"{NAMES.get(name, name)}={escaped}"


def _escaped(one: str) -> str:
    if one in ESCAPED:
        return f"\\{one}"
    return f"\\{ord(one):02X}" if ord(one) < 0x20 or ord(one) == 0x7F else one
