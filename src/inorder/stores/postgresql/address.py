"""The address of a store in PostgreSQL: a libpq URL, with the schema that holds it as `?schema=orders`.

An address is only shown in the form that libpq has read, without the parameters that libpq calls secret. If libpq may
misread a URL (an @ or / in a password that is not percent-encoded), it is refused, and no part of it is shown.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...errors import ArgumentError, bad_argument
from ...support.advice import not_shown

DEFAULT_SCHEMA: Final = "inorder"
SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
URL: Final = re.compile(r"(postgres(?:ql)?://(?:[^@/]*@)?)([^?@]*)(?:\?(.*))?")
KNOWN: Final = {one.keyword.decode(): one.dispchar.decode() for one in psycopg.pq.Conninfo.get_defaults()}
SECRETS: Final = {name for name, mark in KNOWN.items() if mark} | {"password"}
OURS: Final = ("options", "replication")  # the store sets these itself
IN_PLACE: Final = ("user", "host", "port", "dbname")
PORT_MAX: Final = 65535


class Address(NamedTuple):
    """A store's address.

    Args:
        url: for errors, logs and listings; it never has a password.
        parameters: for libpq, secrets included.
        schema: the PostgreSQL schema that holds the store.
    """

    url: str
    parameters: dict[str, str]
    schema: str

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


def parse(url: str) -> Address:
    """Parses a URL. Raises: ArgumentError."""
    found = URL.fullmatch(url)
    if found is None or not url.isprintable():
        raise _bad("with @ as %40 and / as %2F in a user or password")
    beginning, middle, query = found.groups(default="")
    pairs = [one for one in query.split("&") if one]
    names = [unquote(one.partition("=")[0]) for one in pairs]
    for name in names:
        _check_name(name, tells=not SECRETS & {*names})
    rest = [one for one, name in zip(pairs, names, strict=True) if name != "schema"]
    parameters = _understood(f"{beginning}{middle}?{'&'.join(rest)}")
    chosen = [unquote(one.partition("=")[2]) for one in pairs if one not in rest]
    schema = chosen[0] if len(chosen) == 1 else DEFAULT_SCHEMA
    if len(chosen) > 1 or not SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_"):
        allowed = "1 to 63 of a-z, 0-9 and _, not beginning with a digit or pg_, and given once"
        raise bad_argument("schema", ", ".join(chosen), allowed)
    return Address(_shown(parameters, schema), parameters, schema)


def _check_name(name: str, *, tells: bool) -> None:
    if name in OURS:
        raise _bad(f"without {name}, which the store sets itself")
    if name not in KNOWN and name not in ("schema", "ssl"):
        raise _bad(f"without {name!r}" if tells else "with no other parameters than schema and libpq's")


def _understood(url: str) -> dict[str, str]:
    """Parses a URL with libpq. Its error messages are not passed on, because they quote the URL."""
    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except (psycopg.Error, UnicodeError):
        parameters = None
    if parameters is None:
        raise _bad("with each parameter as name=value, and % as %25 in a user or password")
    for port in filter(None, parameters.get("port", "").split(",")):
        if not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise _bad(f"with a port from 1 to {PORT_MAX}")
    return parameters


def _shown(parameters: dict[str, str], schema: str) -> str:
    given = {name: quote(value, safe=",:" if name == "host" else ",") for name, value in parameters.items()}
    user, all_hosts, all_ports, database = (given.get(name, "") for name in IN_PLACE)
    hosts, ports = all_hosts.split(","), all_ports.split(",")
    ports *= len(hosts) if len(ports) == 1 else 1
    places = [
        (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
        for host, port in zip_longest(hosts, ports, fillvalue="")
    ]
    others = {name: value for name, value in given.items() if name not in SECRETS and name not in IN_PLACE}
    query = "&".join(f"{name}={value}" for name, value in {**others, "schema": schema}.items())
    return f"postgresql://{f'{user}@' if user else ''}{','.join(places)}/{database}?{query}"


def _bad(how: str) -> ArgumentError:
    """Returns the error for a URL. It shows no part of the URL, because a password may be in the wrong place."""
    return not_shown("store", f"a URL like postgresql://user@host/database?schema=name, {how}")
