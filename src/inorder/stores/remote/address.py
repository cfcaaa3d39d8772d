"""The address of a store elsewhere, and the connection to its server: TCP, and TLS except on this machine.

No proxy is used: HTTPS_PROXY and similar variables have no effect. No redirect is followed. So credentials reach only
the server that the URL names.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any, Final, NoReturn

from ...errors import ArgumentError, CallerError, Reason, StoreError
from ...support.advice import not_shown
from ...support.sockets import is_loopback, watch_peer
from .credentials import Credentials, checked, from_environment, from_file

URL: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<host>(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*))"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
    re.IGNORECASE | re.ASCII,
)
PORTS: Final = {"https": 443, "http": 80}  # as in a browser, where the same URL leads to the console
PORT_MAX: Final = 65_535
SHORTEST_WAIT_SECONDS: Final = 0.001
OF_ANOTHER_HOST: Final = (62, 64)  # of OpenSSL's X509_V_ERR_...: HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH
OF_ANOTHER_TIME: Final = (9, 10)  # CERT_NOT_YET_VALID, CERT_HAS_EXPIRED


@dataclass(frozen=True, slots=True, repr=False)
class RemoteAddress:
    """The address of a store elsewhere. Its str and repr show no credentials, and it cannot be pickled.

    Args:
        url: `https://HOST:PORT`, in lower case, always with the port.
        host: a name or an address, IPv6 without brackets.
        port: from 1 to 65,535.
        is_secure: whether it is reached by TLS.
        given: the credentials that the program passed.
        named_by_program: whether the program or command itself names the URL. Only then the variables INORDER_TOKEN,
            INORDER_CERTIFICATE, INORDER_KEY and INORDER_CA count: a definition or a table must not send them to a host
            of its choice.
    """

    url: str
    host: str
    port: int
    is_secure: bool
    given: Credentials = field(default=Credentials(), compare=False)
    named_by_program: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemoteAddress({self.url!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an address cannot be pickled, since it may have credentials: pass the URL")

    @property
    def server(self) -> str:
        """HOST:PORT, as a section of the credentials file and the Host header name it."""
        return self.url.partition("://")[2]

    def credentials(self) -> Credentials:
        """The credentials for a new connection.

        They come from the program, from the environment if the program names the URL, and from the credentials file.
        The first of these with a token or a certificate counts, and the first with authorities.

        Raises: CallerError 2012, the credentials file is not usable; ArgumentError 2011, a variable or an entry is
        not valid.
        """
        found = self.given
        if self.named_by_program:
            found = found.completed(from_environment())
        if not found.has_identity or (self.is_secure and found.ca is None):
            found = found.completed(from_file(self.server))
        return found


def parse(url: str, given: Mapping[str, Any] | None = None, *, named_by_program: bool = True) -> RemoteAddress:
    """Parses a URL.

    Args:
        given: the credentials that the program passed, by name: token, certificate, key, ca.
        named_by_program: see `RemoteAddress`.

    Raises: ArgumentError, which shows no part of the URL: it may contain a password or a token.
    """
    found = URL.fullmatch(url)
    if found is None:
        raise _bad("without user, password, path, query or fragment. A token is given as token= or in INORDER_TOKEN")
    scheme, host = found["scheme"].lower(), (found["v6"] or found["host"]).lower()
    port = PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 0 < port <= PORT_MAX:
        raise _bad(f"with a port from 1 to {PORT_MAX:,}")
    if found["v6"]:
        try:
            host = str(IPv6Address(host))
        except ValueError:
            raise _bad("with a valid IPv6 address in brackets") from None
    is_secure = scheme == "https"
    if not is_secure and not is_loopback(host):
        raise _bad("because http:// is only for localhost and the loopback addresses")
    credentials = checked(given or {})
    if not is_secure:
        for name in ("certificate", "key", "ca"):
            if getattr(credentials, name) is not None:
                raise ArgumentError(f"{name} must be left out for http://, which has no TLS", argument=name)
    server = f"[{host}]:{port}" if found["v6"] else f"{host}:{port}"
    return RemoteAddress(f"{scheme}://{server}", host, port, is_secure, credentials, named_by_program)


def ssl_context(address: RemoteAddress, credentials: Credentials) -> ssl.SSLContext | None:
    """The settings of TLS: 1.2 or newer, with the certificate and name of the server checked; None for http://.

    Raises: CallerError 2012, a file of a certificate, key or authority cannot be used.
    """
    if not address.is_secure:
        return None
    try:
        context = ssl.create_default_context(cafile=credentials.ca)
    except OSError as error:  # ssl.SSLError is an OSError
        raise _bad_pem(f"ca {credentials.ca} must be a file with certificates of authorities in PEM", error) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if credentials.certificate is not None:
        try:
            context.load_cert_chain(credentials.certificate, credentials.key, password="")
        except (OSError, ValueError) as error:
            files = " and ".join(
                f"{name} {path}" for name in ("certificate", "key") if (path := getattr(credentials, name))
            )
            raise _bad_pem(f"{files} must be a certificate and its key in PEM, without a password", error) from error
    return context


def connected(address: RemoteAddress, credentials: Credentials, timeout: float) -> socket.socket:
    """Connects to the server. The socket is blocking, without a time-out; a vanished peer ends it within 30 s.

    Args:
        credentials: as `address.credentials()` finds them.
        timeout: seconds, above 0, for each address of the host, and for TLS.

    Raises: StoreError, the server cannot be reached or is not trusted, with the remedy; CallerError, as `ssl_context`.
    """
    context = ssl_context(address, credentials)
    until = time.monotonic() + timeout
    try:
        one = socket.create_connection((address.host, address.port), timeout)
        try:
            watch_peer(one)
            if context is not None:
                one.settimeout(max(SHORTEST_WAIT_SECONDS, until - time.monotonic()))
                one = context.wrap_socket(one, server_hostname=address.host)
            one.settimeout(None)
        except BaseException:
            one.close()
            raise
    except OSError as error:
        raise unreachable(address, error) from error
    return one


def unreachable(address: RemoteAddress, error: OSError) -> StoreError:
    """Makes the error for a server that cannot be reached; data: path, host, port."""
    text = f"{address} cannot be reached: {_why(address, error)}"
    return StoreError(text, path=str(address), host=address.host, port=address.port)


def _why(address: RemoteAddress, error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _why_not_trusted(address, error)
    if isinstance(error, TimeoutError):
        return "it did not answer in time. Check the port, and the firewalls on the way"
    if isinstance(error, ssl.SSLError | ssl.SSLEOFError | ConnectionResetError) and address.is_secure:
        said = getattr(error, "reason", None) or error.strerror or type(error).__name__
        return f"TLS failed ({said}). Check that this port is that of inorder serve with --certificate"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there. Start inorder serve on it, whose port is 9443 unless it has --port"
    if isinstance(error, socket.gaierror):
        return f"{address.host} is not a known host ({error.strerror})"
    return error.strerror or str(error)


def _why_not_trusted(address: RemoteAddress, error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message
    if error.verify_code in OF_ANOTHER_HOST:
        return f"its certificate is not for {address.host} ({said}). Use a name that the certificate has"
    if error.verify_code in OF_ANOTHER_TIME:
        return f"its certificate is not valid now ({said}). Renew it there, or check this machine's clock"
    return (
        f"its certificate is not trusted ({said}). Give the certificate of its authority, or a self-signed one that "
        "you have compared, as ca=, in INORDER_CA, or with inorder login --ca"
    )


def _bad(how: str) -> ArgumentError:
    return not_shown("store", f"a URL like https://host:9443, {how}")


def _bad_pem(text: str, error: Exception) -> CallerError:
    said = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return CallerError(f"{text} ({said})", reason=Reason.ENVIRONMENT_ERROR)


__all__ = ["RemoteAddress", "connected", "parse", "ssl_context", "unreachable"]
