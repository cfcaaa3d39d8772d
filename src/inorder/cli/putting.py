"""`inorder put`: puts messages from the command line, from files or from standard input."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

import click

from .. import Message, PutResult, QueueManager
from ..client.defining import local_name
from ..errors import MessageTooBig, Reason, UnknownQueue
from ..formats import FormatError, dmpmqmsg, rfh2
from ..formats.json_lines import LINE_BYTES_MAX, message_of, record_of_put, told_id
from ..formats.property_text import read_property
from ..model.attributes import QueueAttributes
from ..model.fields import GIVEN
from ..model.options import DEDUPLICATE_FOR_MAX
from ..model.parameters import Seconds, Switch
from ..stores.open import OverNetwork
from ..support.streams import lines_up_to
from .choosing import UNIT_SIZE, Of, takes_format
from .output import standard_input
from .parts import parts
from .running import Command, Run, leaving, queue_names, takes_store
from .wording import count

Form = Literal["whole", "lines", "json", "dmpmqmsg"]
Fields = dict[str, Any]
AROUND_LINE = codecs.BOM_UTF8 + b"\r\n"  # not part of a message
FORMS: dict[str, Form] = {"lines": "lines", "from_json": "json"}


F = TypeVar("F", bound=Callable[..., Any])


def takes_fields(function: F) -> F:
    """Gives a command the options that are fields of the descriptor."""
    for name, field in reversed(list(GIVEN.items())):
        if (option := field.option) is None or field.kind is None:
            continue
        word = f"--{option.name or name.replace('_', '-')}"
        taken: Any = {"type": Of(field.kind.worded({math.inf: "none"})), "metavar": option.metavar}
        if isinstance(field.kind, Switch):
            word, taken = f"{word}/--no-{word[2:]}", {"default": None}
        function = click.option(word, name, help=option.help, **taken)(function)
    return function


@click.command("put", cls=Command, example="inorder put ORDERS 'two apples' --priority 7 --store orders.db")
@click.argument("queue", shell_complete=queue_names)
@click.argument("body", required=False)
@click.option(
    "--file", "files", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PATH",
    help="Put the content of this file as a message; may be repeated.",
)  # fmt: skip
@click.option(
    "--lines",
    is_flag=True,
    help="Put each line of the files or of standard input as a message. The line end (LF or CR LF) and a UTF-8 byte "
    "order mark at the start are left out.",
)
@click.option("--from-json", is_flag=True, help="Each line is a message as 'get --json' writes it.")
@takes_format("The input is in the format of MQ's dmpmqmsg, with descriptors.")
@click.option("--group", is_flag=True, help="Put all messages of this call as one group, in one unit of work.")
@click.option(
    "--keep-context",
    is_flag=True,
    help="Keep the user, program and time of the original put from the JSON or dmpmqmsg input.",
)
@takes_fields
@click.option("--manager", metavar="NAME", help="The queue manager of the queue; default: this one.")
@click.option(
    "--property", "properties", type=read_property, multiple=True, metavar="NAME[:TYPE]=VALUE",
    help="A property; the type is text, int, float, bool, bytes (hex) or none. May be repeated.",
)  # fmt: skip
@click.option("--deduplicate", metavar="KEY", help="Put nothing if a message was already put under this key.")
@click.option(
    "--for",
    "deduplicate_for",
    type=Of(Seconds(0, DEDUPLICATE_FOR_MAX, above=True)),
    metavar="SECONDS",
    help="How long the queue remembers the key; default: 3600.",
)
@UNIT_SIZE
@takes_store
@click.pass_context
def put(
    context: click.Context, /, run: Run, queue: str, body: str | None, files: tuple[Path, ...], **given: Any
) -> None:
    """Put messages: BODY, files, or standard input.

    Without --lines, --from-json or --format, each file or all of standard input is one message. Each unit of work is
    committed to disk, and its messages can be read, before the next one starts. For a long-running pipe use --unit-size
    1, so that each line can be read at once.
    """
    form = _form(given)
    group, keep, size = given.pop("group"), given.pop("keep_context"), given.pop("unit_size")
    _check(body, files, form, group=group, keep=keep)
    _check_key(given, is_one=form == "whole" and len(files) < 2 and not group)
    for path in files:
        run.refuse_own_file(path, "--file")
    fields = _fields(context, given)
    put_so_far = fleeting = 0

    def counted(sources: Iterator[bytes | Message], default: bool) -> Iterator[bytes | Message]:
        nonlocal fleeting
        for one in sources:
            own = one.persistent if isinstance(one, Message) else None
            fleeting += not fields.get("persistent", default if own is None else own)
            yield one

    def left() -> str:
        return f"{count(put_so_far, 'message')} already put on {queue} and kept" if put_so_far else ""

    with run.opened() as qm, leaving(run, left), run.output.progress("putting", "messages") as advance:
        target = _target(qm, queue, given["manager"])
        sources = _sources(body, files, form, _limit(qm, target))
        if target is not None and target.nonpersistent_class == "normal" and not isinstance(run.store, OverNetwork):
            sources = counted(sources, qm.attributes(queue).default_persistence)
        for results in _put(qm, queue, sources, fields, group=group, keep=keep, size=size):
            put_so_far += sum(one.duplicate_of is None for one in results)
            _tell(run, queue, results)
            advance(put_so_far)
        is_alone = bool(fleeting and put_so_far) and len(qm.inspect.connections()) == 1
    run.output.say(f"put {count(put_so_far, 'message')} on {queue}")
    if is_alone and target is not None:
        run.output.note(
            f"{count(fleeting, 'message')} not kept: not persistent, and no other program has the store open. To keep "
            f"such messages: --persistent, or 'inorder queue alter {target.name} --nonpersistent-class high'"
        )


def _form(given: Fields) -> Form:
    """The form of the input. Removes its options from `given`."""
    chosen = [FORMS[name] for name in FORMS if given.pop(name)]
    if (named := given.pop("form")) is not None:
        chosen.append(named)
    if len(chosen) > 1:
        raise click.UsageError("Give only one of --lines, --from-json and --format.")
    return chosen[0] if chosen else "whole"


def _check(body: str | None, files: Sequence[Path], form: Form, *, group: bool, keep: bool) -> None:
    if body is not None and (files or form != "whole"):
        raise click.UsageError("BODY is one message and excludes --file, --lines, --from-json and --format.")
    if keep and form not in ("json", "dmpmqmsg"):
        raise click.UsageError("--keep-context needs --from-json or --format dmpmqmsg.")
    if group and keep:
        raise click.UsageError("--group and --keep-context exclude each other.")


def _check_key(given: Fields, *, is_one: bool) -> None:
    if given["deduplicate"] is not None and not is_one:
        raise click.UsageError(
            "--deduplicate KEY works for one message only: BODY, one --file, or all of standard input."
        )
    if given["deduplicate_for"] is not None and given["deduplicate"] is None:
        raise click.UsageError("--for needs --deduplicate.")


def _fields(context: click.Context, given: Fields) -> Fields:
    """The fields of the descriptor that the command line names."""
    names = [name for name, _ in given["properties"]]
    if twice := [name for name in names if names.count(name) > 1]:
        raise click.UsageError(f"--property {twice[0]} is given twice.")
    given["properties"] = dict(given["properties"])
    source = click.core.ParameterSource.COMMANDLINE
    return {name: value for name, value in given.items() if context.get_parameter_source(name) is source}


class LengthLimit(NamedTuple):
    """The longest message allowed, in bytes, and the queue or queue manager that sets the limit."""

    length: int
    whose: str
    reason: Reason

    def check(self, read: bytes, what: str) -> bytes:
        """Returns the bytes read. One byte more than the limit is enough to refuse them. Raises: MessageTooBig."""
        if len(read) > self.length:
            raise MessageTooBig(
                f"{what} has more than {self.length:,} bytes, the most that {self.whose} takes",
                remedy="raise max_length, or split it into records: inorder load",
                reason=self.reason,
                limit=self.length,
            )
        return read


def _target(qm: QueueManager, queue: str, manager: str | None) -> QueueAttributes | None:
    """The local queue on which a message is put; None: there is none here."""
    if manager:
        return None
    try:
        attributes = qm.attributes(local_name(qm, queue))
    except UnknownQueue:  # the put raises the right error
        return None
    return attributes if attributes.type == "local" else None


def _limit(qm: QueueManager, target: QueueAttributes | None) -> LengthLimit:
    """The longest message that can be put."""
    found = qm.admin.manager_attributes()
    if target is None or target.max_length > found.max_length:
        return LengthLimit(found.max_length, f"queue manager {found.name}", Reason.MSG_TOO_BIG_FOR_Q_MGR)
    return LengthLimit(target.max_length, target.name, Reason.MSG_TOO_BIG_FOR_Q)


def _sources(body: str | None, files: Sequence[Path], form: Form, limit: LengthLimit) -> Iterator[bytes | Message]:
    """Yields the messages of a call as they are read. A message that is too long is not read to its end."""
    if body is not None:
        yield body.encode(errors="surrogateescape")
        return
    for name, stream in _streams(files):
        match form:
            case "whole":
                yield limit.check(stream.read(limit.length + 1), name)
            case "lines":
                for number, line in enumerate(lines_up_to(stream, limit.length + 1 + len(AROUND_LINE)), 1):
                    text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                    text = text.removesuffix(b"\n").removesuffix(b"\r")
                    yield limit.check(text, f"{name}, line {number:,}")
            case "json":
                yield from _lines(name, stream)
            case "dmpmqmsg":
                yield from _dumped(name, stream)


def _lines(name: str, stream: IO[bytes]) -> Iterator[Message]:
    """Yields the messages of lines of JSON. Raises: click.ClickException with the line number, if a line is not a
    message.
    """
    for number, line in enumerate(lines_up_to(stream, LINE_BYTES_MAX + 1), 1):
        if len(line) > LINE_BYTES_MAX:
            raise click.ClickException(f"{name}, line {number:,} is longer than {LINE_BYTES_MAX:,} bytes")
        if line.strip():
            try:
                yield message_of(line, f"{name}, line {number}")
            except FormatError as error:
                raise click.ClickException(error.args[0]) from error


def _dumped(name: str, stream: IO[bytes]) -> Iterator[Message]:
    """Yields the messages of a dmpmqmsg file; the properties that MQ writes in a header of the body are properties.

    Raises: click.UsageError with the line number, if it is not such a file.
    """
    try:
        yield from map(rfh2.unfolded, dmpmqmsg.parse(stream))
    except FormatError as error:
        raise click.UsageError(f"{name}, {error.args[0]}") from error


def _streams(files: Sequence[Path]) -> Iterator[tuple[str, IO[bytes]]]:
    if not files:
        yield "standard input", standard_input()
    for path in files:
        with path.open("rb") as stream:
            yield str(path), stream


def _put(
    qm: QueueManager,
    queue: str,
    sources: Iterator[bytes | Message],
    fields: Fields,
    *,
    group: bool,
    keep: bool,
    size: int,
) -> Iterator[list[PutResult]]:
    """Puts messages, and yields the results of each unit of work once it is committed."""
    if group:
        yield _put_group(qm, queue, sources, fields)
        return
    options: Fields = {"context": "set_all"} if keep else {}
    for part in parts(sources, size):
        yield qm.put_many(queue, part, **options, **fields)


def _put_group(qm: QueueManager, queue: str, bodies: Iterable[bytes | Message], fields: Fields) -> list[PutResult]:
    manager = fields.pop("manager", "")
    with qm.unit_of_work(), qm.group(queue, manager=manager) as group:
        return [group.put(body, **fields) for body in bodies]


def _tell(run: Run, queue: str, results: Sequence[PutResult]) -> None:
    for result in results:
        if run.output.as_json:
            run.output.line(record_of_put(queue, result))
        elif result.warning:
            run.output.note(
                f"warning {result.warning.value} {result.warning.name} for message {told_id(result.message_id)}"
            )
