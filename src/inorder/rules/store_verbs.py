"""The table of verbs that a program may call on a store elsewhere, over the network (issue 37, W-4 and W-5).

Each verb of `stores.seam.protocol.Store` has a row in `VERBS` or is in `STAYS`. A verb without a row cannot be called.
A row states the authorities that the server checks before the call, and the caller's options if the connection breaks
before the answer arrives. docs/explanation/remote-authority.md gives the reasons; `server.store.checking` applies the
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

Lost = Literal["read", "harmless", "unknown"]
"""The caller's options if the connection breaks before the answer arrives.

read: the verb changes nothing, so it may be called again.
harmless: repeating the verb has no second effect, or its effect has ended with the connection, like an open's.
An open of a model for permanent dynamic queues may leave an empty queue. Runs of channels end with the connection, so
the repeat of their calls raises `Fenced`. If a repeat does not find the staging, the outcome is unknown.
unknown: the caller cannot tell whether the verb has happened, and repeating it could do it twice: `OutcomeUnknown`.
"""


class StoreVerb(NamedTuple):
    """A row of the table.

    Args:
        asks: the authorities that the user needs, all of them, or one word of `ASKED`; empty: none.
        of: the path in the arguments to the name of the authorities' queue. A path that ends in `handle` stands for the
            queue as that handle was opened, and no other connection's handle is accepted. Empty: the queue manager.
            `EACH`: the answer shows an item only if the user has the authority on its queues, or made it.
        also: further checks, words of `ALSO`.
        lost: see `Lost`; `LOST_IF` has the exceptions.
    """

    asks: str
    of: str
    also: tuple[str, ...]
    lost: Lost


EACH: Final = "each"
OTHERS: Final = frozenset("ids unit lease claims staging made".split())
"""Words of `ALSO` that require `control` or `administer` for something of others."""

ASKED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "uses": "put to open for output, get to open for input, browse to open for browse",
        "taking": "get; for a browse: browse, and get too if it locks messages, or changes cooperative marks",
        "event": "put to confirm a put, get for everything else",
        "by": "alter or set, as the argument `by` says",
        "carries": "get and control; get alone for a channel that collects from this queue (K-3)",
        "any": "one of put, get, browse, inquire and display",
        "seen": "display; the definition of a receiver is shown to its user, too",
    }
)
"""Words in place of authorities, if these depend on the arguments."""

ALSO: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "opening a model: the same authorities on the new name too, unless it is made up and begins with AMQ.",
        "made": "deleting at close a queue that this handle did not make: administer",
        "context": "control keeps the user and program in a message; in others they are replaced by the caller's",
        "identity": "control keeps the user in a message; in others it is replaced by the caller",
        "page": "256 messages at most",
        "bytes": "the answer ends after 65,536 messages or 64 MiB of bodies, unless it is one group",
        "previews": "1,000 messages and 64 MiB of previews at most, but at least one message",
        "uid": "a unique id of this store that is neither reserved for the connection nor on the queue: control",
        "ids": "confirm ids and lock ids that belong to another user: control",
        "holder": "a message that a confirm id of another user holds: control",
        "unit": "a prepared unit of another user: control",
        "lease": "a lease of another user: control",
        "new": "a lease of this name must not exist",
        "claims": "claims of an application of another user or of a channel that does not collect, and "
        "delivers=False: control",
        "staging": "a staging of another user: control",
        "staged": "a user's stagings for a queue have as many rows as its max_depth at most, together",
        "moves": "moves=True: control",
        "kind": "of channels, connections, addresses and processes; no other kind of object exists for a client",
        "receiver": "the receiver's definition names the user and the sending store; without one: administer",
        "valid": "attributes that can be stored, of this name; others are refused with ArgumentError",
        "works": "get on the queue of each task in the record, put on that of each schedule",
        "holders": "the holders of messages: display on the queue, or the user's own",
    }
)
"""Further checks of arguments or answers."""

# fmt: off
_ROWS: Final[Mapping[str, tuple[str, str, str, Lost]]] = {
    # verb                  asks           of                        also          lost
    # --- handles
    "open":                ("uses",        "queue",                  "model",      "harmless"),
    "extend":              ("uses",        "handle",                 "",           "harmless"),
    "close":               ("",            "handle",                 "made",       "harmless"),
    "keep_handles":        ("",            "",                       "",           "harmless"),
    "check_handle":        ("",            "handle",                 "",           "read"),
    # --- queues and the queue manager
    "create_queue":        ("administer",  "",                       "valid",      "unknown"),
    "alter_queue":         ("by",          "name",                   "",           "unknown"),
    "delete_queue":        ("administer",  "",                       "",           "unknown"),
    "clear_queue":         ("clear",       "name",                   "",           "unknown"),
    "retry_now":           ("get",         "name",                   "",           "unknown"),
    "queues":              ("inquire",     EACH,                     "",           "read"),
    "queue":               ("any",         "name",                   "",           "read"),
    "status":              ("inquire",     "name",                   "",           "read"),
    "manager":             ("",            "",                       "",           "read"),
    "alter_manager":       ("administer",  "",                       "",           "unknown"),
    # --- objects
    "define_object":       ("administer",  "",                       "kind valid", "unknown"),
    "alter_object":        ("administer",  "",                       "kind valid", "unknown"),
    "delete_object":       ("administer",  "",                       "kind",       "unknown"),
    "object":              ("seen",        "",                       "kind",       "read"),
    "objects":             ("display",     "",                       "kind",       "read"),
    "note_worker":         ("",            "",                       "works",      "harmless"),
    # --- messages
    "reserve_numbers":     ("",            "",                       "",           "harmless"),
    "put":                 ("put",         "request.handle",         "context uid ids", "unknown"),
    "end_group":           ("put",         "handle",                 "",           "unknown"),
    "withdraw":            ("put",         "handle",                 "",           "unknown"),
    "get":                 ("taking",      "request.handle",         "ids bytes",  "unknown"),
    "wait":                ("taking",      "request.handle",         "ids bytes",  "unknown"),
    "browse_page":         ("taking",      "request.handle",         "ids page",   "read"),
    "read_rest":           ("get",         "handle",                 "",           "read"),
    "unlock":              ("",            "handle",                 "",           "harmless"),
    "leave_group":         ("",            "handle",                 "",           "harmless"),
    "end_waits":           ("",            "",                       "",           "harmless"),
    # --- confirmed calls
    "browse_and_lock":     ("get",         "request.handle",         "ids bytes",  "unknown"),
    "one_message":         ("event",       "request.handle",         "ids holder", "unknown"),
    "undo":                ("get put",     "handle",                 "ids",        "unknown"),
    "release_lock":        ("get",         "handle",                 "ids",        "unknown"),
    "unique_ids":          ("browse",      "handle",                 "ids",        "read"),
    # --- units of work and leases
    "settle":              ("",            "",                       "moves",      "unknown"),
    "prepare":             ("",            "",                       "",           "unknown"),
    "settle_prepared":     ("",            "",                       "unit",       "unknown"),
    "units":               ("display",     EACH,                     "",           "read"),
    "has_unit":            ("",            "",                       "",           "read"),
    "begin_global":        ("",            "",                       "",           "unknown"),
    "end_global":          ("",            "",                       "unit",       "harmless"),
    "begin_lease":         ("",            "",                       "new",        "unknown"),
    "lease":               ("",            "",                       "lease",      "read"),
    "extend_lease":        ("",            "",                       "lease",      "harmless"),
    "enter_lease":         ("",            "",                       "lease",      "harmless"),
    "leave_lease":         ("",            "",                       "",           "harmless"),
    "end_lease":           ("",            "",                       "lease",      "unknown"),
    # --- claims and surveys
    "begin_claims":        ("get",         "handle",                 "claims",     "harmless"),
    "claim":               ("get",         "request.claimer.handle", "claims",     "harmless"),
    "plan_claims":         ("get",         "claimer.handle",         "claims",     "harmless"),
    "read_claim":          ("get",         "claimer.handle",         "claims",     "read"),
    "settle_claims":       ("get",         "claimer.handle",         "claims",     "harmless"),
    "return_ahead":        ("get",         "claimer.handle",         "claims",     "harmless"),
    "finish_claims":       ("get",         "queue",                  "claims",     "harmless"),
    "leave_claimed_group": ("get",         "queue",                  "claims",     "harmless"),
    "release_claims":      ("get",         "queue",                  "claims",     "harmless"),
    "claims":              ("display",     EACH,                     "",           "read"),
    "survey":              ("browse",      "request.handle",         "",           "read"),
    "read_stretch":        ("browse",      "handle",                 "",           "read"),
    # --- stagings and the ledger
    "stage":               ("put",         "request.handle",         "context staging staged", "unknown"),
    "settle_staging":      ("",            "",                       "staging",    "unknown"),
    "undo_staging":        ("",            "",                       "staging",    "harmless"),
    "in_ledger":           ("put",         "queue",                  "",           "read"),
    "last_settled":        ("put",         "queue",                  "",           "read"),
    # --- channels at the sender
    "take_channel":        ("carries",     "handle",                 "",           "harmless"),
    "note_channel":        ("carries",     "handle",                 "",           "harmless"),
    "next_batch":          ("carries",     "request.claimer.handle", "",           "harmless"),
    "confirm_batch":       ("carries",     "request.claimer.handle", "",           "harmless"),
    "note_home_server":    ("control",     "",                       "",           "harmless"),
    "stop_channel":        ("control",     "",                       "",           "harmless"),
    "start_channel":       ("control",     "",                       "",           "harmless"),
    "resolve_channel":     ("carries",     "handle",                 "",           "unknown"),
    "reset_channel":       ("carries",     "handle",                 "",           "harmless"),
    "channels":            ("display",     "",                       "",           "read"),
    # --- channels at the receiver
    "receive":             ("",            "",                       "receiver",   "harmless"),
    "receive_piece":       ("",            "",                       "receiver",   "harmless"),
    "bind_channel":        ("",            "",                       "receiver",   "harmless"),
    "reset_received":      ("",            "",                       "receiver",   "harmless"),
    "received":            ("display",     "",                       "",           "read"),
    # --- marks
    "is_own":              ("display",     "",                       "",           "read"),
    "report_exception":    ("",            "",                       "identity",   "unknown"),
    # --- looking
    "look":                ("browse",      "request.queue",          "holders previews", "read"),
    "gaps":                ("browse",      "queue",                  "",           "read"),
    "order_view":          ("display",     "queue",                  "",           "read"),
    "waits":               ("display",     EACH,                     "",           "read"),
    "locks":               ("display",     EACH,                     "",           "read"),
    "list_connections":    ("display",     EACH,                     "",           "read"),
    "overview":            ("inquire",     EACH,                     "",           "read"),
    "dropped":             ("inquire",     EACH,                     "",           "read"),
    # --- housekeeping
    "discard_expired":     ("",            "",                       "page",       "harmless"),
    "check":               ("control",     "",                       "",           "read"),
}
VERBS: Final[Mapping[str, StoreVerb]] = MappingProxyType(
    {name: StoreVerb(asks, of, tuple(also.split()), lost) for name, (asks, of, also, lost) in _ROWS.items()}
)

# `Lost` in these cases: the first match counts. The path leads to this value; True stands for every value that counts
# as true. A unit of work ends with its connection, so nothing done in one is left; a lease does not, so the paths in
# `UNIT` are not checked in one.
LOST_IF: Final[Mapping[str, tuple[tuple[str, Any, Lost], ...]]] = MappingProxyType({
    "close":            (("delete",                     True,        "unknown"),),
    "put":              (("request.in_unit",            True,        "harmless"),
                         ("request.options.deduplicate", True,       "harmless"),
                         ("request.options.resend",     True,        "harmless")),
    "get":              (("request.options.browse",     True,        "read"),
                         ("request.syncpoint",          True,        "harmless")),
    "wait":             (("request.options.browse",     True,        "read"),
                         ("request.syncpoint",          True,        "harmless")),
    "one_message":      (("request.event.name",         "CONFIRM_PUT", "harmless"),
                         ("request.event.name",         "CONFIRM_GET", "harmless")),
    "settle":           (("outcome",                    "back_out",  "harmless"),),
    "receive":          (("batch.number",               0,           "unknown"),),
    "settle_staging":   (("key.batch",                  True,        "harmless"),),
    "report_exception": (("in_unit",                    True,        "harmless"),),
})

# The names of calls in the operator log, with arguments in braces, and after "on" the path to the name of the queue. A
# call with a word of `OTHERS` is logged only if it concerns something of others.
ACTS: Final[Mapping[str, str]] = MappingProxyType({
    "create_queue":       "define on attributes.name",
    "alter_queue":        "{by} on name",
    "delete_queue":       "delete on name",
    "close":              "delete on handle",
    "clear_queue":        "clear on name",
    "retry_now":          "retry on name",
    "alter_manager":      "alter queue manager",
    "define_object":      "define {kind} {name}",
    "alter_object":       "alter {kind} {name}",
    "delete_object":      "delete {kind} {name}",
    "undo":               "undo on handle",
    "release_lock":       "release lock on handle",
    "settle_prepared":    "{outcome} prepared:{name}",
    "end_global":         "end global:{name}",
    "end_lease":          "back_out lease:{name}",
    "finish_claims":      "finish claims on queue",
    "leave_claimed_group": "leave group on queue",
    "release_claims":     "release claims on queue",
    "undo_staging":       "drop staging",
    "stop_channel":       "stop channel {channel}",
    "start_channel":      "start channel {channel}",
    "resolve_channel":    "resolve channel {channel}",
    "reset_channel":      "reset channel {channel}",
    "reset_received":     "reset channel {sender.channel}",
})

# The verbs of `Store` that do not exist on the wire, and why. Those that only `LocalStore` has do not travel either.
STAYS: Final[Mapping[str, str]] = MappingProxyType({
    "connect":        "the connection itself is one: the server makes it for the user who has logged in",
    "disconnect":     "its end is the end of the connection",
    "rename":         "the server has the store open, so no other program can rename the queue manager",
    "with_bodies":    "the server makes it for the receiver's exit",
    "stop":           "it would stop the server, and every other program, for good",
})

# The arguments that do not travel, because they identify the user or limit its use: the server fills them in.
FILLED_IN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "keep_handles":     ("owner",),
    "open":             ("owner",),
    "reserve_numbers":  ("owner",),
    "end_waits":        ("owner",),
    "settle":           ("owner",),
    "prepare":          ("owner",),
    "note_home_server": ("owner",),
    "note_worker":      ("owner",),
    "settle_prepared":  ("user",),
    "has_unit":         ("owner",),
    "begin_global":     ("owner",),
    "end_global":       ("user",),
    "begin_lease":      ("owner", "user", "most"),
    "lease":            ("user",),
    "extend_lease":     ("user",),
    "enter_lease":      ("owner", "user"),
    "leave_lease":      ("owner",),
    "end_lease":        ("user",),
    "settle_staging":   ("owner",),
    "receive":          ("user",),
    "report_exception": ("owner",),
})
# fmt: on

OBJECT_KINDS: Final = ("channel", "connection", "address", "process")
"""The kinds of objects that exist for a client; users and tokens are objects, too."""


UNIT: Final = frozenset({"request.in_unit", "request.syncpoint", "in_unit", "outcome"})


def lost_of(verb: str, arguments: Mapping[str, Any], *, leased: bool = False) -> Lost:
    """Returns the caller's options if the connection broke before the answer to this call arrived.

    Args:
        leased: whether the connection's unit of work is a lease.
    """
    for path, value, lost in LOST_IF.get(verb, ()):
        if leased and path in UNIT:
            continue
        found = value_at(arguments, path)
        if bool(found) if value is True else found == value:
            return lost
    return VERBS[verb].lost


def deletes_queue(arguments: Mapping[str, Any]) -> bool:
    """Whether a close with these arguments is to delete the queue: `purge` alone does so, too."""
    return bool(arguments.get("delete") or arguments.get("purge"))


def value_at(arguments: Mapping[str, Any], path: str) -> Any:
    """The value to which a path leads: an argument, and attributes of it."""
    first, *others = path.split(".")
    found = arguments.get(first)
    for name in others:
        found = getattr(found, name)
    return found
