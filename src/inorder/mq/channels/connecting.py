"""Named connections to other stores, and the table that maps MQ's addresses to them (W-9).

A channel's `connection` is the name of a connection, an address of MQ like `host(1414)`, or else the path or URL of a
store. An address of MQ never names a file.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from ...client.manager import QueueManager
from ...client.users import NAME_LENGTH_MAX as USER_LENGTH_MAX
from ...errors import ObjectExists, UnknownObject, bad_argument
from ...model.attribute import NAME_LENGTH_MAX, NAMES_ALLOWED, is_name
from ...model.channel_attributes import CONNECTION_LENGTH_MAX, ChannelAttributes
from ...model.parameters import is_storable
from ...stores.open import REMOTE_URL, URL_LIKE, locate
from ...stores.seam.damage import decodes
from ...stores.seam.definitions import CONNECTION, Connection, read_connection

ADDRESS = "address"  # a kind of objects
_ONE_ADDRESS: Final = r"\s*[^()/,\s]+\s*\(\s*[0-9]{1,5}\s*\)\s*"
MQ_ADDRESS: Final = re.compile(rf"{_ONE_ADDRESS}(?:,{_ONE_ADDRESS})*")


class MappedAddress(NamedTuple):
    """The connection that stands for an address of MQ.

    Args:
        name: the address, `host(port)` or several with commas between them.
        connection: the name of the connection.
    """

    name: str
    connection: str


@decodes("an address of MQ")
def _mapped(text: str) -> MappedAddress:
    return MappedAddress(*(str(json.loads(text)[name]) for name in MappedAddress._fields))


def checked_connection(text: str) -> Connection:
    """Reads a connection that a client gives. Raises ArgumentError; StoreDamaged, if it is not a connection."""
    made = read_connection(text)
    _check(made)
    return made


def checked_address(text: str) -> MappedAddress:
    """Reads an entry of the table that a client gives. Raises ArgumentError; StoreDamaged, if it is not an entry."""
    made = _mapped(text)
    _check_address(made)
    return made


def define_connection(
    qm: QueueManager, name: str, location: str, *, user: str = "", replace: bool = False
) -> Connection:
    """Defines a connection, which channels can name.

    The process that runs a channel finds credentials for a URL of a server in its credentials file, and those for a
    database in libpq's. `INORDER_TOKEN` is not used.

    Args:
        user: only for a URL of a server: a channel stops if the server authenticates this side as another user.
        replace: whether an existing connection of this name is changed.

    Raises ArgumentError; ObjectExists 2100.
    """
    made = Connection(name, location, user)
    _check(made)
    text = json.dumps(made._asdict())
    with qm._session:
        try:
            qm._store.define_object(CONNECTION, name, text)
        except ObjectExists:
            if not replace:
                raise
            before = qm._store.object(CONNECTION, name).attributes
            qm._store.alter_object(CONNECTION, name, before, text)
    return made


def _check(one: Connection) -> None:
    if not is_name(one.name):
        raise bad_argument("name", one.name, NAMES_ALLOWED.format(NAME_LENGTH_MAX))
    allowed = f"the path of a file or {URL_LIKE}, without a password, of at most {CONNECTION_LENGTH_MAX} characters"
    if not isinstance(one.location, str) or not is_storable(one.location) or MQ_ADDRESS.fullmatch(one.location):
        raise bad_argument("location", one.location, allowed)
    where = locate(one.location, named_by_program=False)
    if where.is_in_memory or where.secret or len(one.location) > CONNECTION_LENGTH_MAX:
        raise bad_argument("location", str(where), allowed)
    if not isinstance(one.user, str) or not is_storable(one.user) or len(one.user) > USER_LENGTH_MAX:
        raise bad_argument("user", one.user, f"a text of at most {USER_LENGTH_MAX} characters")
    if one.user and not REMOTE_URL.match(one.location):
        raise bad_argument(
            "user", one.user, "left out unless the location is a URL of a server, like https://host:9443"
        )


def delete_connection(qm: QueueManager, name: str) -> None:
    """Deletes a connection. Channels that name it can no longer run. Raises UnknownObject 2085."""
    with qm._session:
        qm._store.delete_object(CONNECTION, name)


def connection(qm: QueueManager, name: str) -> Connection:
    """Returns one connection. Raises UnknownObject 2085 with the most similar names."""
    with qm._session:
        return read_connection(qm._store.object(CONNECTION, name).attributes)


def connections(qm: QueueManager) -> list[Connection]:
    """Returns all connections, by name."""
    with qm._session:
        return sorted(read_connection(row.attributes) for row in qm._store.objects(CONNECTION))


def map_address(qm: QueueManager, address: str, connection: str) -> None:
    """Maps an address of MQ to a named connection, for channels whose `connection` is this address.

    Args:
        address: as in CONNAME: `host(port)`, or several with commas between them. An entry of this address is replaced.

    Raises ArgumentError; UnknownObject 2085, there is no such connection.
    """
    made = MappedAddress(address, connection)
    _check_address(made)
    text = json.dumps(made._asdict())
    with qm._session:
        qm._store.object(CONNECTION, connection)
        try:
            qm._store.define_object(ADDRESS, address, text)
        except ObjectExists:
            qm._store.alter_object(ADDRESS, address, qm._store.object(ADDRESS, address).attributes, text)


def _check_address(one: MappedAddress) -> None:
    allowed = f"an address of MQ, host(port), of at most {CONNECTION_LENGTH_MAX} characters"
    if not isinstance(one.name, str) or not is_storable(one.name) or len(one.name) > CONNECTION_LENGTH_MAX:
        raise bad_argument("address", one.name, allowed)
    if MQ_ADDRESS.fullmatch(one.name) is None:
        raise bad_argument("address", one.name, allowed)
    if not is_name(one.connection):
        raise bad_argument("connection", one.connection, NAMES_ALLOWED.format(NAME_LENGTH_MAX))


def unmap_address(qm: QueueManager, address: str) -> None:
    """Removes an address of MQ from the table. Raises UnknownObject 2085."""
    with qm._session:
        qm._store.delete_object(ADDRESS, address)


def addresses(qm: QueueManager) -> dict[str, str]:
    """Returns the table of MQ's addresses, with the name of the connection of each."""
    with qm._session:
        return {row.name: _mapped(row.attributes).connection for row in qm._store.objects(ADDRESS)}


def connection_of(qm: QueueManager, channel: ChannelAttributes) -> Connection:
    """Returns the connection of a channel; its name is empty if the channel names a path or URL itself.

    Raises UnknownObject 2085, with `channel`: its address of MQ is not in the table, or leads to a connection that no
    longer exists.
    """
    text = channel.connection
    if MQ_ADDRESS.fullmatch(text):
        try:
            with qm._session:
                found = _mapped(qm._store.object(ADDRESS, text).attributes)
            return connection(qm, found.connection)
        except UnknownObject as error:
            raise UnknownObject(
                f"channel {channel.name} leads to {text}, an address of MQ, for which there is no connection: define "
                f"one with inorder connection define, and run inorder channel map '{text}' CONNECTION",
                kind=error.data["kind"],
                object=error.data["object"],
                channel=channel.name,
            ) from error
    if is_name(text):
        try:
            return connection(qm, text)
        except UnknownObject:
            pass  # a path
    return Connection("", text)


__all__ = [
    "MQ_ADDRESS",
    "Connection",
    "addresses",
    "checked_address",
    "checked_connection",
    "connection",
    "connection_of",
    "connections",
    "define_connection",
    "delete_connection",
    "map_address",
    "unmap_address",
]
