"""MQCONN, MQCONNX, MQDISC: connections to the store for which a queue manager's name stands.

Rules: M-7 to M-9.
"""

from __future__ import annotations

import ctypes
import logging
from typing import TYPE_CHECKING, Any, Final

from ..client.manager import QueueManager, connect_to
from ..client.users import User
from ..errors import CallInProgress, InorderError, Reason, StoreError
from ..stores.open import OverNetwork
from .commands import after_commit
from .connections import SHARES, MqiConnection, add, connection_of, known
from .constants import MQCNO_HANDLE_SHARE_NONE, constants
from .descriptor import text_of
from .layouts import CD, CNO, CSP
from .refusals import MQCC_FAILED, MQCC_OK, MQCC_WARNING, Refused
from .settings import StoreSettings, server_connection, settings_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

log = logging.getLogger("inorder.mqi")

OPTIONS: Final = sum({value for name, value in constants().items() if name.startswith("MQCNO_")})


def connect(
    name: bytes, cno: Buffer | None = None, cd: Buffer | None = None, csp: Buffer | None = None
) -> tuple[int, int, int]:
    """Connects; returns the handle. Raises: Refused 2018, 2035, 2046, 2058, 2059, 2139."""
    options, program, cd_at, csp_at = 0, "", 0, 0
    if cno is not None:
        values = CNO.read(cno)
        options, program = values.Options, text_of(values.ApplName)
        cd_at, csp_at = (
            _address(cno, values.ClientConnPtr, values.ClientConnOffset),
            _address(cno, values.SecurityParmsPtr, values.SecurityParmsOffset),
        )
    share = options & SHARES or MQCNO_HANDLE_SHARE_NONE
    if options & ~OPTIONS or share & (share - 1):
        raise Refused(Reason.OPTIONS_ERROR)
    if cd is None and cd_at:
        cd = _structure(cd_at, CD)
    if csp is None and csp_at:
        csp = _structure(csp_at, CSP)
    channel = None if cd is None else CD.read(cd)
    is_client = channel is not None
    address = text_of(channel.ConnectionName) if channel is not None else server_connection()
    manager = text_of(name)
    settings = settings_of(manager, address)
    if not is_client and share == MQCNO_HANDLE_SHARE_NONE and (before := known(manager, settings)) is not None:
        return before.handle, MQCC_WARNING, int(Reason.ALREADY_CONNECTED)
    user, password = _credentials(channel, csp)
    made, known_user = _connected(settings, program, user, password)
    connection = MqiConnection(made, manager, settings, share=share, is_client=is_client)
    connection.user = known_user
    if cno is not None:
        values.ConnectionId = connection.identifier
        CNO.write(cno, values)
    return add(connection), MQCC_OK, int(Reason.NONE)


def _connected(settings: StoreSettings, program: str, user: str, password: str) -> tuple[QueueManager, User | None]:
    try:
        where = settings.location
        if not where.is_in_memory and not where.is_there(program):
            log.error("there is no store at %s: create it first", where)
            raise Refused(Reason.Q_MGR_NOT_AVAILABLE)
        made = connect_to(where, program=program or None, user=user or settings.user or None)
    except StoreError as error:
        log.error("a queue manager cannot be reached: %s", error)
        raise Refused(Reason.Q_MGR_NOT_AVAILABLE) from None
    try:
        if (user or settings.user) and not isinstance(where, OverNetwork):  # a server elsewhere knows the token's user
            return made, _user_of(made, user or settings.user, password if user else None)
    except BaseException:
        made.internals.abandon()
        raise
    return made, None


def _user_of(manager: QueueManager, user: str, password: str | None) -> User | None:
    """A user of the store; None: it has no users.

    Args:
        password: None: mqi.toml has named the user, so it is not checked.

    Raises: LogInRefused 2035; Refused 2035, the user that mqi.toml names does not exist.
    """
    users = {each.name: each for each in manager.accounts.users()}
    if users and password is not None:
        from ..support.passwords import verifier  # noqa: PLC0415 - needs a library that few programs have

        return manager.accounts.identify(name=user, verify=verifier(password))
    if users and user not in users:
        log.error("mqi.toml names the user %r, whom the store does not have", user)
        raise Refused(Reason.NOT_AUTHORIZED)
    return users.get(user)


def _credentials(channel: Any, csp: Buffer | None) -> tuple[str, str]:
    """The user and password of MQCSP, else of MQCD; empty: the program gives none."""
    if csp is not None:
        values = CSP.read(csp)
        user = _string(csp, values.CSPUserIdPtr, values.CSPUserIdOffset, values.CSPUserIdLength)
        password = _string(csp, values.CSPPasswordPtr, values.CSPPasswordOffset, values.CSPPasswordLength)
        if user:
            return user, password
    if channel is not None:
        return text_of(channel.RemoteUserIdentifier) or text_of(channel.UserIdentifier), text_of(
            channel.RemotePassword
        ) or text_of(channel.Password)
    return "", ""


def address_of(buffer: Any) -> int:
    """The address of a buffer in memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def _address(buffer: Any, pointer: int, offset: int) -> int:
    return pointer or (address_of(buffer) + offset if offset else 0)


def _structure(address: int, layout: Any) -> Any:
    """The structure at an address, of the length of its version."""
    head = (ctypes.c_char * layout.size(layout.oldest)).from_address(address)
    return (ctypes.c_char * layout.size(layout.version(head))).from_address(address)


def _string(buffer: Any, pointer: int, offset: int, length: int) -> str:
    address = _address(buffer, pointer, offset)
    return text_of(ctypes.string_at(address, length)) if address and length > 0 else ""


def disconnect(handle: int) -> tuple[int, int]:
    """Commits the unit of work and ends the connection (R5.6). Raises: Refused 2018."""
    connection = connection_of(handle)
    connection.check(controls=True)
    if connection.consumers is not None:
        connection.consumers.stop()
    with connection:
        try:
            if connection.consumers is not None:
                connection.consumers.end()
            if connection.requests:
                connection.manager.commit()
                after_commit(connection)
            connection.end()
        except CallInProgress:
            raise
        except InorderError as error:
            completion = MQCC_WARNING if error.reason is Reason.BACKED_OUT else MQCC_FAILED
            raise Refused(error.reason, completion) from None
    return MQCC_OK, int(Reason.NONE)
