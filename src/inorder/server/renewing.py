"""TLS that reads its files again when they change: the certificate and its key, who signs clients, revocation lists.

OpenSSL cannot take a list out of a context, and prefers the first one of a signer. So files that have changed give a
new context, by which connections are made from then on. Those that are there stay as they are, and a client cannot
resume what it began with an earlier context: it shows its certificate once more. Each worker looks by itself, when a
connection comes.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from uvicorn import Config

from ..errors import CallerError
from . import certificates, revocation
from .logs import LOGGER

log = logging.getLogger(LOGGER)

State = tuple[object, ...]


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

    def check(self, now: datetime) -> None:
        """Raises: CallerError, one of them is not what it should be, or counts no more."""
        certificates.check(self.certificate, self.key)
        if self.client_ca is not None:
            certificates.check_authorities(self.client_ca)
            if self.client_crl is not None:
                revocation.check(self.client_crl, self.client_ca, now)


@dataclass(frozen=True, slots=True)
class Renewing:
    """Makes the TLS of a worker: what uvicorn hands to the processes that it begins.

    A worker whose files cannot be used ends, with an error in the log; its supervisor begins another one.
    """

    files: Files

    def __call__(self, config: Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        del config

        def make() -> ssl.SSLContext:
            self.files.check(datetime.now(timezone.utc))
            context = default()
            if self.files.client_crl is not None:
                context.load_verify_locations(self.files.client_crl)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
            return context

        try:
            return Renewed(self.files.all, make)
        except (CallerError, OSError) as error:  # ssl.SSLError is an OSError
            log.error("the files of TLS cannot be used: %s", error)
            raise SystemExit(1) from None


class Renewed(ssl.SSLContext):
    """A context that makes each connection by another one, which is as the files are.

    Args:
        files: those that `make` reads.
        make: a context of the files as they are; what it raises leaves the one before in use, and is logged.

    Raises: as `make`, at first.
    """

    def __new__(cls, files: Sequence[Path], make: Callable[[], ssl.SSLContext]) -> Renewed:
        del files, make
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, files: Sequence[Path], make: Callable[[], ssl.SSLContext]) -> None:
        self._files, self._make = files, make
        self._state = self._seen()
        self._context = make()

    def wrap_bio(self, *given: Any, **more: Any) -> ssl.SSLObject:
        """The side of one connection: what asyncio calls."""
        self._look()
        return self._context.wrap_bio(*given, **more)

    def _look(self) -> None:
        """Once for each state of the files: also one that cannot be read is not tried again until something changes."""
        state = self._seen()
        if state == self._state:
            return
        self._state = state
        try:
            self._context = self._make()
        except (CallerError, OSError) as error:  # ssl.SSLError is an OSError
            log.error("files of TLS have changed and cannot be used; those read before stay in use: %s", error)
        else:
            log.info("files of TLS have changed, and were read again")

    def _seen(self) -> State:
        return tuple(map(_state_of, self._files))


def _state_of(path: Path) -> State | None:
    """What changes when a file does; None: it cannot be found."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
