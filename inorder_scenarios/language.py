"""The language of the scenario tables: text to steps.

A file is a list of scenarios. `scenario: TITLE` begins one, with a fresh store; `#` begins a comment. Every
other line is a step:

    ACTOR VERB [WORD]... -> OUTCOME

An actor is a connection, made at its first step; `A.2` is a second handle of connection `A`; `qm` is the
operator. A word is a flag or `key=value`. The tables ACTOR_VERBS and OPERATOR_VERBS below have the words of each verb,
OUTCOMES those of outcomes; any other word is refused with its line.

The language is described in full in docs/spec/scenarios.md. Beyond that page:

    A leave-group                       -> ok             the handle is no longer inside a group that it gets

and for claims, surveys and staged rows (`bulk`):

    A begin-claims [app=NAME]           -> ok settled=N horizon=$h   a start; without app= of `app`
    A claim N [most= bytes= horizon=]   -> [m1 m2] claim=K, or none  claims up to N are done; the next one's messages.
                                           Also logical, complete, all-messages, strict, relaxed. It begins by itself.
                                           more=yes or more=no: whether its limits left messages on the queue.
    A plan-claim K [slices=S]           -> [1-3 4-5]      the first and last position of each slice
    A read-claim K [slices=S]           -> [m1 m2]        plans and reads
    A settle-claims N                   -> M              confirms up to N; how many messages went
    A claim N ahead [most= bytes= ...]  -> M, or none     takes the messages after claim N before they are asked for
    A return-ahead                      -> M              returns the messages of a claim that was taken ahead
    qm finish-claims NAME N             -> M              as settle-claims, for a reader that has stopped
    qm release-claims NAME              -> M              returns the messages of open claims
    qm leave-claimed-group NAME         -> ok             its application is no longer inside a group
    A survey first|next [most= bytes= slices=]  -> [m1 m2]   the messages of a browse; next: those after them
    A stage NAME BODY [priority= group-key= order-key= property= lasts=SECONDS]  -> ok   one row
    A settle-staging BATCH NAME...      -> N, or ignored  puts the rows; ignored: that batch was put before
    A undo-staging NAME                 -> N              drops them

for other fields:

    format=MQSTR, user-identifier=ann    of put and stage: any field that a program may give (`model.fields`), by
                    its name with - for _; of a message that was got: those that are texts

for properties:

    property=NAME=VALUE, property=NAME:TYPE=VALUE   of put, as often as there are properties (`formats.property_text`);
                    of a message that was got: it has this property; property=none: it has no properties at all

for reports and dead letters:

    report=coa+cod-with-full-data   of put and stage: names of `inorder.Report`, joined by +; reply-to=QUEUE
    feedback=coa    of a message that was got: a name of `inorder.Feedback`, or a number; also id= and correlation=
    qm set dead-letter-queue=NAME

for puts under keys:

    deduplicate=KEY [deduplicate-for=SECONDS]   of put and put-group
                                        -> ignored of=BODY    nothing was put: that message was put under the same key
    A put-group BODY...  [syncpoint deduplicate= ...]  -> ok, or ignored   a whole group, by one call

for schedules, of which a table may have any number:

    qm schedule NAME cron=`* * * * *` [on= zone= missed=one|all|none]  -> ok   every process may put it from now on
    A put-due [NAME...]                 -> [NAME@N ...]   the messages that A puts for these schedules, else for all;
                                           N: the seconds from the beginning of the scenario until the message was due.
                                           The clock begins at 2001-09-09 01:46:40 UTC

for selectors:

    selector=`CONDITION`   of every verb that matches; between the marks blanks, # and -> are a part of the word

for names that lead elsewhere:

    qm queue NAME remote=QUEUE@MANAGER [transmission-queue=NAME]    a remote definition; remote=@MANAGER is an alias of
                                           the queue manager; also of alter
    qm queue NAME remote=QUEUE@QM2 mode=synchronous connection=NAME   each call is made at QM2
    qm define-connection NAME to=qm2    -> ok             the named connection to it
    qm queue NAME usage=transmission    -> ok             a transmission queue
    qm set default-transmission=NAME    -> ok             the default one
    put, open, get manager=NAME            the queue manager that has the queue
    A listen [on=NAME]                  -> ok             a listener is registered, and cancelled at once
    transmission=QUEUE@MANAGER             of a message that was got: its destination; transmission=none: it has none

for several queue managers (`channelling`), each with a store of its own, which the same clock moves:

    qm2 VERB ..., up to qm9                the operator of queue manager QM2; that of `qm` is called TEST
    A@qm2 VERB ..., A.2@qm2 VERB ...       an actor that is connected to it; A and A@qm2 have nothing in common
    confirm-get BODY and others            a body that was not put there means the last such message that was read there
    qm define-channel NAME to=qm2          -> ok   a sender channel; its transmission queue is called as that manager.
                                           Also queue= batch-size= bytes=KILOBYTES read-order= exit=MODULE:FUNCTION,
                                           speed=, and short-retries= long-retries=, with the seconds short-interval=
                                           long-interval=; a table that asks for none has no retries
    qm2 define-channel NAME receiver       -> ok   the receiver's definition: retries= interval= exit= speed=
    qm alter-channel NAME ...              the same words
    qm run-channel NAME [kill=POINT] [hold=POINT]  -> ok sent=N   carries until nothing more can be claimed; while it
                                           waits the clock moves. sent= counts the messages of all runs. POINT: a name
                                           in `channels.points`, or `waits`: each second of a pause; POINT:3: the third
                                           -> killed: it has died there, without any clean-up
                                           -> held: it is held there, and other steps continue
    qm queue NAME targets=QM2,QM3          -> ok   a store-and-forward queue; also of alter
    qm2 queue NAME home-server=TEST connection=NAME  -> ok   a home-server queue
    qm2 pull NAME [kill=POINT] [hold=POINT]  -> ok state=   collects until nothing more can be claimed, as run-channel
    qm2 trigger NAME                       -> ok
    qm resume-channel NAME                 -> as run-channel: it continues
    qm kill-channel NAME                   -> killed: it dies where it is held
    qm stop-channel NAME MODE, start-channel NAME  -> ok
    qm reset-channel NAME N                -> ok   on both sides
    qm resolve-channel NAME [commit|back_out] [force]  -> ok action=commit
    qm channel-status NAME                 -> ok state= stop= number= in-doubt= waiting= sent= reason=NAME speed=
                                           NAME:QM2 is the channel by which QM2 collects here, and at QM2 its queue
    qm2 received                           -> N    the number of the last batch that came, by the only channel
    qm delete NAME                         -> ok   a queue, with its messages

for requests and replies:

    A request BODY timeout=SECONDS [on= reply-to= report= expiry=]  -> REPLY, waits, none
    B reply BODY REPLY [syncpoint]         -> ok   to the message of this body that B got last
    B report BODY FEEDBACK [syncpoint]     -> ok, or ignored: the message does not ask for it

And for confirmed calls:

    match-uid=BODY, of every verb that matches: the message named by the body, as in confirm-get
    match-token=BODY, likewise: the message with this body that the actor has read
    A browse-lock [most=N] [lease=SECONDS]  -> [m1 m2] lock=$k   the first N at most; unlocked when the lease ends
    A unique-ids confirm=7, or lock=$k      -> [m1 m2]     the messages under it, in queue order
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inorder.formats.property_text import read_property
from inorder.model.fields import GIVEN
from inorder.model.parameters import Text

PUT_FLAGS = "syncpoint in-group last-in-group segment last-segment segmentation logical resend again"
FIELDS = " ".join(field.word for field in GIVEN.values())
PUT_KEYS = f"{FIELDS} on length confirm manager deduplicate deduplicate-for"
NO_PROPERTIES = "none"
REPEATED = frozenset({"property"})  # a word that may be repeated; its values are joined with blanks
READ_FLAGS = "logical complete all-messages all-segments strict relaxed notify accept-truncated"
READ_KEYS = (
    "on manager wait buffer match-id match-uid match-correlation match-group match-seq match-offset match-priority "
    "match-token confirm lock token selector"
)
# A text between ` belongs to the word that contains it.
PIECE = r"(?:`[^`]*`|[^`])"
COMMENT = re.compile(rf"^({PIECE}*?)#.*")
STEP = re.compile(rf"({PIECE}*?)->\s*(\S.*)")
WORD = re.compile(r"(?:`[^`]*`|[^\s`])+")
BULK_FLAGS = "logical complete all-messages strict relaxed"
QUEUE_KEYS = (
    "delivery default-priority order read-order max-depth max-length persistent backout-threshold get put shareable "
    "alias-of usage remote transmission-queue mode connection targets home-server"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbSyntax:
    """The arguments of a verb: the number of names after it, its flags, its keys."""

    names: tuple[int, int] = (0, 0)
    flags: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()


def _verb(names: tuple[int, int] = (0, 0), flags: str = "", keys: str = "on") -> VerbSyntax:
    return VerbSyntax(names=names, flags=frozenset(flags.split()), keys=frozenset(keys.split()))


ACTOR_VERBS: Mapping[str, VerbSyntax] = {
    "put": _verb((1, 1), PUT_FLAGS, PUT_KEYS),
    "put-group": _verb((1, 99), "syncpoint", "on deduplicate deduplicate-for"),
    "put-due": _verb((0, 99), keys=""),
    "get": _verb((0, 0), f"{READ_FLAGS} syncpoint syncpoint-if-persistent under-cursor", READ_KEYS),
    "get-all": _verb((0, 0), f"{READ_FLAGS} syncpoint syncpoint-if-persistent", READ_KEYS),
    "browse": _verb((1, 1), f"{READ_FLAGS} lock mark-handle mark-co-op unmarked", READ_KEYS),
    "browse-all": _verb((0, 0), f"{READ_FLAGS} lock mark-handle mark-co-op unmarked", READ_KEYS),
    "browse-lock": _verb((0, 0), "", f"{READ_KEYS} most lease"),
    "unique-ids": _verb(keys="on confirm lock"),
    "commit": _verb(keys=""),
    "backout": _verb(keys=""),
    "prepare": _verb((1, 1), keys=""),
    "disconnect": _verb(keys=""),
    "crash": _verb(keys=""),
    "close": _verb(),
    "unlock": _verb((0, 1), keys="on lock"),
    "leave-group": _verb(keys="on"),
    "token": _verb(),
    "confirm-put": _verb((1, 1), keys="on confirm"),
    "confirm-get": _verb((1, 1), keys="on confirm"),
    "undo": _verb((1, 1)),
    "delete": _verb((1, 1), keys="on lock"),
    "open": _verb((0, 0), "exclusive co-op strict relaxed", "on manager"),
    "listen": _verb(),
    "resumes": _verb(keys=""),
    "begin-claims": _verb(keys="on app"),
    "claim": _verb((1, 1), f"{BULK_FLAGS} ahead", "on app most bytes horizon"),
    "plan-claim": _verb((1, 1), keys="on app slices"),
    "read-claim": _verb((1, 1), keys="on app slices"),
    "settle-claims": _verb((1, 1), keys="on app"),
    "return-ahead": _verb((0, 0), keys="on app"),
    "survey": _verb((1, 1), BULK_FLAGS, "on most bytes slices"),
    "stage": _verb((2, 2), keys=f"{FIELDS} on group-key order-key lasts"),
    "settle-staging": _verb((2, 99), keys=""),
    "undo-staging": _verb((1, 1), keys=""),
    "request": _verb((1, 1), keys="on timeout reply-to report expiry"),
    "reply": _verb((2, 2), "syncpoint", ""),
    "report": _verb((2, 2), "syncpoint", ""),
}
CHANNEL_KEYS = (
    "to queue batch-size bytes read-order exit speed short-retries long-retries short-interval long-interval "
    "retries interval"
)
OPERATOR_VERBS: Mapping[str, VerbSyntax] = {
    "queue": _verb((1, 1), keys=QUEUE_KEYS),
    "alter": _verb((1, 1), keys=QUEUE_KEYS),
    "depth": _verb((0, 1), keys=""),
    "clock": _verb((1, 1), keys=""),
    "restart": _verb(keys=""),
    "settle": _verb((2, 2), keys=""),
    "finish-claims": _verb((2, 2)),
    "release-claims": _verb((1, 1)),
    "leave-claimed-group": _verb((1, 1)),
    "delete": _verb((1, 1), keys=""),
    "schedule": _verb((1, 1), keys="on cron zone missed"),
    "define-connection": _verb((1, 1), keys="to"),
    "define-channel": _verb((1, 1), "receiver", CHANNEL_KEYS),
    "alter-channel": _verb((1, 1), keys=CHANNEL_KEYS),
    "run-channel": _verb((1, 1), keys="kill hold"),
    "pull": _verb((1, 1), keys="kill hold"),
    "trigger": _verb((1, 1), keys=""),
    "resume-channel": _verb((1, 1), keys=""),
    "kill-channel": _verb((1, 1), keys=""),
    "stop-channel": _verb((2, 2), keys=""),
    "start-channel": _verb((1, 1), keys=""),
    "reset-channel": _verb((2, 2), keys=""),
    "resolve-channel": _verb((1, 2), "force", ""),
    "channel-status": _verb((1, 1), keys=""),
    "received": _verb(keys=""),
    "set": _verb(keys="max-uncommitted dead-letter-queue default-transmission"),
}

CHANNEL_FACTS = frozenset("state stop number in-doubt waiting sent reason action speed".split())
OK_FACTS = frozenset("id group seq offset flags warning settled horizon".split()) | CHANNEL_FACTS
MESSAGE_FACTS = frozenset(
    "group segment seq offset flags original-length backouts priority length warning earlier-pending property feedback "
    "id correlation transmission".split()
) | frozenset(field.word for field in GIVEN.values() if isinstance(field.kind, Text))
ENDING_FACTS = frozenset("kind by lock claim more".split())
OUTCOMES: Mapping[str, frozenset[str]] = {
    "ok": OK_FACTS,
    "none": frozenset({"kind"}),
    "pending": frozenset({"kind", "by"}),
    "waits": frozenset(),
    "error": frozenset(),
    "ignored": frozenset({"of"}),
    "held": frozenset(),
    "killed": frozenset(),
}
ACTOR = re.compile(r"(\w+)(\.\d+)?(@qm[2-9])?")
OPERATOR = re.compile(r"qm[2-9]?")
HERE = "qm"  # the queue manager of actors that name none
BODY = re.compile(r"[^\s#+\[\]=$]+")


class TableError(Exception):
    """A mistake in a table: file, line (0: the whole file), and the fault."""

    def __init__(self, file: str, line: int, text: str) -> None:
        super().__init__(f"{file}:{line}: {text}" if line else f"{file}: {text}")
        self.file, self.line, self.text = file, line, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The expected outcome of a step.

    Args:
        kind: ok, none, pending, waits, error, ignored, held, killed, message, list, number or token.
        value: the message's name, the reason or name of the error (empty: any), the number, the token.
        items: of a list.
        facts: what else is asserted.
    """

    kind: str
    value: str = ""
    items: tuple[str, ...] = ()
    facts: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStep:
    """One line of a scenario.

    Args:
        manager: the queue manager at which it is done, as the table calls it.
    """

    line: int
    text: str
    actor: str
    verb: str
    names: tuple[str, ...]
    flags: frozenset[str]
    keys: Mapping[str, str]
    expected: Expected
    manager: str = HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario: its title, its place in the file, its steps."""

    title: str
    file: str
    line: int
    steps: tuple[ScenarioStep, ...]


def read_scenarios(path: str | Path) -> list[Scenario]:
    """Returns the scenarios of a file. Raises: TableError with file and line; OSError."""
    return parse(Path(path).read_text(encoding="utf-8"), str(path))


def parse(text: str, file: str = "<text>") -> list[Scenario]:
    """Returns the scenarios of a text."""
    found: list[tuple[str, int, list[ScenarioStep]]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = COMMENT.sub(r"\1", raw).strip()
        if not line:
            continue
        try:
            if line.startswith("scenario:"):
                found.append((_title(line), number, []))
            elif not found:
                raise ValueError("a step before the first scenario")
            else:
                found[-1][2].append(parse_step(line, number))
        except ValueError as wrong:
            raise TableError(file, number, str(wrong)) from None
    for title, number, steps in found:
        if not steps:
            raise TableError(file, number, f"the scenario {title!r} has no steps")
    return [Scenario(title=title, file=file, line=number, steps=tuple(steps)) for title, number, steps in found]


def _title(line: str) -> str:
    title = line.partition(":")[2].strip()
    if not title:
        raise ValueError("a scenario needs a title")
    return title


def parse_step(line: str, number: int = 0) -> ScenarioStep:
    """Parses one step. Raises: ValueError, with the wrong word."""
    found = STEP.fullmatch(line)
    if not found:
        raise ValueError("a step needs `-> OUTCOME`")
    call, outcome = found.groups()
    actor, _, rest = call.strip().partition(" ")
    name, *words = [word.replace("`", "") for word in WORD.findall(rest)] or [""]
    actor, manager = _actor(actor)
    verbs = OPERATOR_VERBS if actor == HERE else ACTOR_VERBS
    if name not in verbs:
        raise ValueError(f"unknown verb {name!r} for {actor!r}; it is one of {', '.join(verbs)}")
    names, flags, keys = _words(name, verbs[name], words)
    if name in ("put", "put-group"):
        for body in names:
            _check_body(body)
    return ScenarioStep(
        line=number,
        text=line,
        actor=actor,
        verb=name,
        names=names,
        flags=flags,
        keys=keys,
        expected=parse_outcome(outcome.strip()),
        manager=manager,
    )


def _actor(word: str) -> tuple[str, str]:
    """The actor of a step, `qm` or ACTOR.HANDLE, and its queue manager."""
    if OPERATOR.fullmatch(word):
        return HERE, word
    found = ACTOR.fullmatch(word)
    if not found:
        raise ValueError(f"{word!r} is not the name of an actor")
    name, handle, manager = found.groups()
    return f"{name}{handle or '.1'}", (manager or f"@{HERE}")[1:]


def _words(name: str, verb: VerbSyntax, words: list[str]) -> tuple[tuple[str, ...], frozenset[str], dict[str, str]]:
    names: list[str] = []
    flags: set[str] = set()
    keys: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in verb.keys and value and (key not in keys or key in REPEATED):
            keys[key] = _one_more(key, keys.get(key), value)
        elif not equals and word in verb.flags and not (len(names) < verb.names[0]):
            flags.add(word)
        elif not equals and len(names) < verb.names[1]:
            names.append(word)
        else:
            takes = ", ".join([*sorted(verb.flags), *(f"{key}=" for key in sorted(verb.keys))])
            raise ValueError(f"{name} does not take {word!r}; it takes {takes or 'nothing'}")
    if len(names) < verb.names[0]:
        raise ValueError(f"{name} needs {verb.names[0]} name(s)")
    return tuple(names), frozenset(flags), keys


def _check_body(body: str) -> None:
    if not BODY.fullmatch(body) or body in OUTCOMES or re.fullmatch(r"-?\d+", body) or "->" in body:
        raise ValueError(f"{body!r} cannot be the name of a message")


def parse_outcome(text: str) -> Expected:
    """Parses the outcome after the arrow."""
    if text.startswith("["):
        return _list(text)
    head, *words = text.split()
    if head.startswith("error"):
        return _error(head, words, text)
    if head in OUTCOMES:
        return Expected(kind=head, facts=_facts(words, OUTCOMES[head]), text=text)
    if re.fullmatch(r"-?\d+", head):
        return Expected(kind="number", value=head, facts=_facts(words, frozenset()), text=text)
    if head.startswith("$"):
        return Expected(kind="token", value=head, facts=_facts(words, frozenset()), text=text)
    return Expected(kind="message", value=head, facts=_facts(words, MESSAGE_FACTS), text=text)


def _error(head: str, words: list[str], text: str) -> Expected:
    name, equals, value = head.partition("=")
    if name != "error" or (equals and not value) or words:
        raise ValueError(f"{text!r} is not an outcome: write error or error=REASON")
    return Expected(kind="error", value=value, facts={}, text=text)


def _list(text: str) -> Expected:
    inside, bracket, rest = text[1:].partition("]")
    if not bracket:
        raise ValueError(f"{text!r} lacks its ]")
    facts: dict[str, str] = {}
    words = rest.split()
    ending = ""
    if (words and words[0] == "pending") or (words and words[0].startswith("error=")):
        ending = words.pop(0)
    facts.update(_facts(words, ENDING_FACTS))
    return Expected(kind="list", value=ending, items=tuple(inside.split()), facts=facts, text=text)


def _facts(words: list[str], known: frozenset[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known or not value:
            raise ValueError(
                f"{word!r} is not said of this outcome; it may say {', '.join(sorted(known)) or 'nothing'}"
            )
        facts[key] = _one_more(key, facts.get(key), value)
    return facts


def _one_more(key: str, before: str | None, value: str) -> str:
    """The value to keep for a key; values of one that may be repeated are joined. Raises: ValueError."""
    if key not in REPEATED:
        return value
    if value != NO_PROPERTIES:
        read_property(value)
    return value if before is None else f"{before} {value}"
