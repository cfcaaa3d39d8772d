"""TLS that reads its files again when they change: the certificate and its key, who signs clients, revocation lists.

OpenSSL cannot take a list out of a context, and prefers the first one of a signer. So files that have changed give a
new context, by which connections are made from then on, and a client cannot resume what it began with an earlier
context: it shows its certificate once more. Connections that are open stay open, unless their client has a certificate
that counts no more: it has expired, is on a new list, or came when there were signers that are gone now. These are cut
off. Each worker looks by itself: when a connection comes, when something comes on one with a client certificate, and
every few seconds while there are such.
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
EVERY_SECONDS: Final = 3.0  # between two looks while connections with client certificates are open


class Tls(NamedTuple):
    """What the files give.

    Args:
        context: for connections.
        signers: of client certificates, each in DER.
        revoked: the client certificates on lists.
    """

    context: ssl.SSLContext
    signers: frozenset[bytes] = frozenset()
    revoked: frozenset[Mark] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What a server has for TLS, all of it in PEM.

    Args:
        certificate, key: the server's.
        client_ca: who signs client certificates; None: nobody is asked for one.
        client_crl: lists of those that were revoked, as `revocation.check` wants them; None: there are none.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_crl: Path | None = None

    @property
    def all(self) -> Sequence[Path]:
        return [one for one in (self.certificate, self.key, self.client_ca, self.client_crl) if one is not None]

    def check(self, now: datetime) -> frozenset[Mark]:
        """Which client certificates were revoked.

        Raises: CallerError, one of them is not what it should be, or counts no more.
        """
        certificates.check(self.certificate, self.key)
        if self.client_ca is not None:
            certificates.check_authorities(self.client_ca)
            if self.client_crl is not None:
                return revocation.check(self.client_crl, self.client_ca, now)
        return frozenset()


@dataclass(frozen=True, slots=True)
class Renewing:
    """Makes the TLS of a worker: what uvicorn hands to the processes that it begins.

    A worker whose files cannot be used ends, with an error in the log; its supervisor begins another one.
    """

    files: Files

    def __call__(self, config: Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        del config

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
    """A context that makes each connection by another one, which is as the files are.

    Args:
        files: those that `make` reads.
        make: TLS by the files as they are; what it raises leaves the one before in use, and is logged.

    Raises: as `make`, at first.
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
        """The side of one connection: what asyncio calls."""
        self.look()
        return self._tls.context.wrap_bio(*given, **more)

    def shown(self, connection: ssl.SSLObject, cut_off: Callable[[], None]) -> CertifiedConnection:
        """A connection that was made with a client certificate; `cut_off` ends it at once. Close it at its end.

        Raises: ValueError, IndexError: it is not a certificate.
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
        """This connection is over."""
        self._open.discard(shown)

    def is_good(self, shown: CertifiedConnection) -> bool:
        """Whether a certificate is good by the files as they were read last."""
        return time.time() < shown.ends and shown.mark not in self._tls.revoked and shown.signers <= self._tls.signers

    def look(self) -> None:
        """Reads files that have changed, and then cuts off the connections whose certificates count no more.

        Once for each state of the files: also one that cannot be read is not tried again until something changes.
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
        self._cut_off()  # also what has expired
        if self._open:
            self._look_later()

    def _seen(self) -> State:
        return tuple(map(_state_of, self._files))


@dataclass(eq=False, slots=True)
class CertifiedConnection:
    """A connection that was made with a client certificate.

    Args:
        ends: when the certificate expires, seconds since 1970.
        signers: those of the files when the connection was made.
    """

    context: Renewed
    mark: Mark
    ends: float
    signers: frozenset[bytes]
    cut_off: Callable[[], None]

    def counts(self) -> bool:
        """Whether the certificate is good now; if files have changed and it is not, the connection is cut off."""
        self.context.look()
        return self.context.is_good(self)

    def close(self) -> None:
        self.context.closed(self)


def _state_of(path: Path) -> State | None:
    """What changes when a file does; None: it cannot be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
