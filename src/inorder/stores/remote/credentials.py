"""Credentials for stores elsewhere: from the program, the environment, or a file that only its owner can read.

The file, `~/.config/inorder/credentials` or the one that INORDER_CREDENTIALS names, has a section for each server:

    [orders.example:9443]
    token = ...
    ca = authority.pem

Each section has some of `token`, `certificate`, `key` and `ca`. The last three are paths of files in PEM; a relative
one begins at the folder of the credentials file. `inorder login` writes the file, and drops comments.

A secret is in no repr and no error, and credentials cannot be pickled: another process finds its own.
"""

from __future__ import annotations

import configparser
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from ...errors import CallerError, Reason, bad_argument
from ...model.options import is_path
from ...support.advice import not_shown

FILE_VARIABLE: Final = "INORDER_CREDENTIALS"
PATHS: Final = ("certificate", "key", "ca")
NAMES: Final = ("token", *PATHS)
VARIABLES: Final = {name: f"INORDER_{name.upper()}" for name in NAMES}
TOKEN: Final = re.compile(r"[!-~]{1,4096}")  # it is sent in a header
EVERYBODY: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for one server.

    Args:
        token: a token of a user of the server; None: none.
        certificate: the file of a client certificate, with its chain, in PEM.
        key: the file of its key; None: it is in the file of the certificate.
        ca: the file of the authorities that may sign the server's certificate; None: those that the system trusts.
    """

    token: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    @property
    def has_identity(self) -> bool:
        """Whether they name a user: by a token or a certificate."""
        return self.token is not None or self.certificate is not None

    def completed(self, other: Credentials) -> Credentials:
        """Returns the token and certificate of the first with either, and the authorities of the first with any."""
        identity = self if self.has_identity else other
        return replace(identity, ca=self.ca or other.ca)

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials cannot be pickled: another process finds its own by the URL of the store")


def checked(given: Mapping[str, Any], named: Callable[[str], str] = str, folder: Path | None = None) -> Credentials:
    """Makes credentials from values.

    Args:
        given: the values by their names in `NAMES`; None: left out.
        named: the name of a value in errors.
        folder: where relative paths begin; None: the working directory.

    Raises: ArgumentError, which does not show the token.
    """
    token = given.get("token")
    if token is not None and not (isinstance(token, str) and TOKEN.fullmatch(token)):
        raise not_shown(named("token"), "1 to 4,096 printable ASCII characters without blanks")
    paths: dict[str, Path] = {}
    for name in PATHS:
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, str | os.PathLike) or not is_path(value):
            raise bad_argument(named(name), value, "the path of a file in PEM")
        paths[name] = (folder or Path()) / Path(value).expanduser()
    if "key" in paths and "certificate" not in paths:
        raise bad_argument(named("key"), given["key"], f"left out unless {named('certificate')} is given")
    return Credentials(token, **paths)


def from_environment() -> Credentials:
    """The credentials in INORDER_TOKEN, INORDER_CERTIFICATE, INORDER_KEY and INORDER_CA. Raises: ArgumentError."""
    return checked(
        {name: os.environ.get(variable) or None for name, variable in VARIABLES.items()}, VARIABLES.__getitem__
    )


def from_file(server: str) -> Credentials:
    """The credentials for a server in the credentials file; none if there is no file, or no section for it.

    Args:
        server: HOST:PORT.

    Raises: CallerError 2012, the file cannot be read, is readable by other users, or is not valid; ArgumentError.
    """
    path = credentials_file()
    if path is None:
        return Credentials()
    found = _read(path)
    if found is None and FILE_VARIABLE in os.environ:
        raise _bad_file(path, f"does not exist, and {FILE_VARIABLE} names it")
    name = None if found is None else _section(found, server)
    if found is None or name is None:
        return Credentials()
    section = dict(found[name])
    if not section.keys() <= set(NAMES):  # the other name is not shown: it may be a token with an =
        raise _bad_file(path, f"must have only {', '.join(NAMES)} in [{server}]")
    return checked(section, lambda name: f"{name} of [{server}] in {path}", path.parent)


def credentials_file() -> Path | None:
    """The path of the credentials file, which may be missing; None: INORDER_CREDENTIALS is empty, or no home exists."""
    named = os.environ.get(FILE_VARIABLE)
    if named is not None:
        return Path(named).expanduser() if named else None
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # noqa: PTH117 - the standard says that other values do not count
        try:
            folder = str(Path.home() / ".config")
        except RuntimeError:  # this user has no home
            return None
    return Path(folder) / "inorder/credentials"


def keep(server: str, found: Credentials) -> Path:
    """Writes the section of a server, in place of an older one. Returns the path of the file.

    Raises: CallerError 2012, the file has no path, or is not valid; OSError, it cannot be written.
    """
    path = credentials_file()
    if path is None:
        text = f"there is no place for credentials: set {FILE_VARIABLE} to the path of a file"
        raise CallerError(text, reason=Reason.ENVIRONMENT_ERROR)
    file = _read(path) or _parser()
    file.remove_section(_section(file, server) or server)
    file[server] = {name: str(value) for name in NAMES if (value := getattr(found, name))}
    return _write(path, file)


def forget(server: str) -> bool:
    """Removes the section of a server. Returns whether there was one.

    Raises: CallerError 2012, the file is not valid; OSError, it cannot be written.
    """
    path = credentials_file()
    file = None if path is None else _read(path)
    name = None if file is None else _section(file, server)
    if path is None or file is None or name is None:
        return False
    file.remove_section(name)
    _write(path, file)
    return True


def _section(file: configparser.RawConfigParser, server: str) -> str | None:
    """The name of a server's section, in any case."""
    return next((name for name in file.sections() if name.lower() == server), None)


def _write(path: Path, file: configparser.RawConfigParser) -> Path:
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, new = tempfile.mkstemp(prefix=".credentials-", dir=path.parent)  # for its owner only
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            file.write(written)
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
    return path


def _parser() -> configparser.RawConfigParser:
    """INI without interpolation, and without a section that applies to all servers."""
    return configparser.RawConfigParser(default_section="", delimiters=("=",), comment_prefixes=("#", ";"))


def _read(path: Path) -> configparser.RawConfigParser | None:
    """Reads the file; None: it is missing. Raises: CallerError 2012."""
    parser = _parser()
    is_valid = True
    try:
        with path.open(encoding="utf-8") as file:
            _check_permissions(path, file)
            parser.read_file(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        how = f"cannot be read ({error.strerror}): set {FILE_VARIABLE} to another file, or to nothing for none"
        raise _bad_file(path, how) from error
    except (configparser.Error, UnicodeError):  # without a cause, which would quote the file
        is_valid = False
    if not is_valid:
        raise _bad_file(path, "must have sections [HOST:PORT], each once, with lines NAME = VALUE, in UTF-8")
    return parser


def _check_permissions(path: Path, file: IO[str]) -> None:
    if os.name != "posix":
        return
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_mode & EVERYBODY:
        raise _bad_file(path, f"must not be accessible to other users: run chmod 600 {path}")
    if found.st_uid not in (os.geteuid(), 0):
        raise _bad_file(path, "must belong to the user who reads it")


def _bad_file(path: Path, how: str) -> CallerError:
    return CallerError(f"the credentials file {path} {how}", reason=Reason.ENVIRONMENT_ERROR, path=str(path))


__all__ = ["Credentials", "checked", "credentials_file", "forget", "from_environment", "from_file", "keep"]
