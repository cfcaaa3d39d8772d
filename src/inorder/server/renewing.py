"""TLS that reads its files again when they change: the certificate and key, the authorities, and the revocation lists.

OpenSSL cannot remove a list from a context, and prefers the first list of an issuer. So changed files give a new
context, which all later connections use. A client cannot resume a TLS session of an earlier context, so it shows its
certificate again. Open connections stay open unless their client certificate is no longer valid: it has expired, it is
on a new list, or an authority was removed since. The server cuts these connections off. Each worker checks the files
when a connection begins, when a request arrives on a connection with a client certificate, and every few seconds while
there are such connections.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from uvicorn import Config

from ..errors import CallerError
from . import certificates, revocation
from .logs import LOGGER
from .revocation import Mark

log = logging.getLogger(LOGGER)

State = tuple[object, ...]
EVERY_SECONDS: Final = 3.0  # between two checks while connections with client certificates are open


class Tls(NamedTuple):
    """The result of reading the files.

    Args:
        context: for new connections.
        signers: the authorities of client certificates, each in DER.
        revoked: the client certificates on revocation lists.
    """

    context: ssl.SSLContext
    signers: frozenset[bytes] = frozenset()
    revoked: frozenset[Mark] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files for TLS, all in PEM.

    Args:
        certificate, key: the server's.
        client_ca: the authorities of client certificates; None: the server asks for no client certificates.
        client_crl: the revocation lists, which `revocation.check` reads; None: there are none.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_crl: Path | None = None

    @property
    def all(self) -> Sequence[Path]:
        return [one for one in (self.certificate, self.key, self.client_ca, self.client_crl) if one is not None]

    def check(self, now: datetime) -> frozenset[Mark]:
        """Returns the revoked client certificates. Raises: CallerError, if a file is not valid."""
        certificates.check(self.certificate, self.key)
        if self.client_ca is not None:
            certificates.check_authorities(self.client_ca)
            if self.client_crl is not None:
                return revocation.check(self.client_crl, self.client_ca, now)
        return frozenset()


@dataclass(frozen=True, slots=True)
class Renewing:
    """Makes the TLS context of a worker. uvicorn passes this object to the processes that it starts.

    A worker that cannot use the files ends, with an error in the log, and its supervisor starts another one.
    """

    files: Files

    def __call__(self, _: Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:

        def make() -> Tls:
            revoked = self.files.check(datetime.now(timezone.utc))
            context = default()
            if self.files.client_crl is not None:
                context.load_verify_locations(self.files.client_crl)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
            return Tls(context, frozenset(context.get_ca_certs(binary_form=True)), revoked)

        try:
            return Renewed(self.files.all, make)
        except (CallerError, OSError) as error:  # ssl.SSLError is an OSError
            log.error("the files for TLS cannot be used: %s", error)
            raise SystemExit(1) from None


class Renewed(ssl.SSLContext):
    """A context that makes each connection with an inner context, which it replaces when the files change.

    Args:
        files: the files that `make` reads.
        make: reads the files. If it fails after a change, the previous context stays in use, and the error is logged.

    Raises: the errors of the first `make`.
    """

    def __new__(cls, files: Sequence[Path], make: Callable[[], Tls]) -> Renewed:
        del files, make
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, files: Sequence[Path], make: Callable[[], Tls]) -> None:
        self._files, self._make = files, make
        self._state = self._seen()
        self._tls = make()
        self._open: set[CertifiedConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def wrap_bio(self, *given: Any, **more: Any) -> ssl.SSLObject:
        """Makes the TLS side of a connection. asyncio calls this method."""
        self.look()
        return self._tls.context.wrap_bio(*given, **more)

    def shown(self, connection: ssl.SSLObject, cut_off: Callable[[], None]) -> CertifiedConnection:
        """Registers a connection with a client certificate; `cut_off` ends it at once. Close the result at its end.

        Raises: ValueError, if it is not a certificate.
        """
        whole, read = connection.getpeercert(binary_form=True), connection.getpeercert()
        assert whole, "the connection has a client certificate"
        assert read, "the context asks for certificates that it can verify"
        ends = ssl.cert_time_to_seconds(cast("str", read["notAfter"]))
        signers = frozenset(connection.context.get_ca_certs(binary_form=True))
        shown = CertifiedConnection(self, revocation.mark_of(whole), ends, signers, cut_off)
        self._open.add(shown)
        if self._timer is None:
            self._look_later()
        return shown

    def closed(self, shown: CertifiedConnection) -> None:
        """Forgets a connection that has ended."""
        self._open.discard(shown)

    def is_good(self, shown: CertifiedConnection) -> bool:
        """Whether a certificate is valid by the files as they were last read."""
        return time.time() < shown.ends and shown.mark not in self._tls.revoked and shown.signers <= self._tls.signers

    def look(self) -> None:
        """Reads changed files, and then cuts off the connections whose certificates are no longer valid.

        It reads each state of the files once. After a failure it does not try again until something changes.
        """
        state = self._seen()
        if state == self._state:
            return
        self._state = state
        try:
            self._tls = self._make()
        except (CallerError, OSError) as error:  # ssl.SSLError is an OSError
            log.error("the files for TLS have changed and cannot be used; the old ones stay in use: %s", error)
        else:
            log.info("the files for TLS have changed and were read again")
            self._cut_off()

    def _cut_off(self) -> None:
        for one in [one for one in self._open if not self.is_good(one)]:
            one.cut_off()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._look_and_go_on)

    def _look_and_go_on(self) -> None:
        self._timer = None
        self.look()
        self._cut_off()  # also expired certificates
        if self._open:
            self._look_later()

    def _seen(self) -> State:
        return tuple(map(_state_of, self._files))


@dataclass(eq=False, slots=True)
class CertifiedConnection:
    """A connection with a client certificate.

    Args:
        ends: when the certificate expires, in seconds since 1970.
        signers: the authorities at the time when the connection began.
    """

    context: Renewed
    mark: Mark
    ends: float
    signers: frozenset[bytes]
    cut_off: Callable[[], None]

    def counts(self) -> bool:
        """Whether the certificate is valid now. If changed files have made it invalid, cuts the connection off."""
        self.context.look()
        return self.context.is_good(self)

    def close(self) -> None:
        self.context.closed(self)


def _state_of(path: Path) -> State | None:
    """A value that changes with the file; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
