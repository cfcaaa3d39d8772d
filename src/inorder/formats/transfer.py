"""Files over queues: put one as a group, get a group back into a file. A unit of work holds either as one step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ..client.manager import QueueManager
from ..client.queue import Queue
from ..errors import CallerError, NoMessageAvailable, Reason, bad_argument
from ..model.message import LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Descriptor, Message
from ..model.options import EVERYTHING, GetOptions, Match, PutOptions
from .errors import ManifestError, RebuildError
from .file_group import Existing, Rebuilder, Record, records
from .manifest import FORMAT, Manifest, parse
from .paths import Root
from .splitting import CHUNK_BYTES, RECORD_BYTES_MAX, Rule, Whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

BATCH_MESSAGES: Final = 256
BATCH_BYTES: Final = 1024 * 1024
LOGICAL_IN_UNIT: Final = PutOptions(logical=True, syncpoint=True)
OURS: Final = frozenset({"flags", "format", "group_id", "message_id", "offset", "original_length", "sequence_number"})


class FilePut(NamedTuple):
    """A file that was put: its manifest, and the id of its group."""

    manifest: Manifest
    group_id: bytes


class FileGot(NamedTuple):
    """A file that was got: its manifest, the id of its group, and where the file is now."""

    manifest: Manifest
    group_id: bytes
    path: Path


def put_file(
    manager: QueueManager,
    queue: str,
    root: Root,
    path: str,
    rule: Rule | str,
    *,
    chunk: int = CHUNK_BYTES,
    record_max: int = RECORD_BYTES_MAX,
    record_format: str = "",
    **fields: Unpack[Descriptor],
) -> FilePut:
    """Puts a file as one group: its manifest, of the format `INOFILE`, then its records.

    It is part of the unit of work that is open, or makes one of its own. If it fails, nothing of it stays in the unit.
    Memory holds a batch of 1 MiB beside the longest record.

    Args:
        root: a folder.
        path: of the file below it; it is the path in the manifest.
        rule: how the file is split, a rule or its text; see `inorder.formats.splitting`.
        chunk: bytes read at a time, and bytes of a segment for the rule `whole`, fewer if the queue takes no more.
        record_max: bytes of the longest record that is allowed.
        record_format: the format of the records' descriptors, at most 8 characters.
        **fields: fields of the descriptor of all messages, for example `priority`; not those of the group.

    Raises: as `records`, and as `Queue.put`; UnitTooLarge 2024, the file has more records than a unit may hold.
    """
    for name in sorted(OURS & fields.keys()):
        raise bad_argument("field", name, "one that does not say where a message belongs, or what it is")
    with _unit(manager), manager.open(queue, output=True) as handle:
        limits = manager.attributes(handle.local_name).max_length, manager.admin.manager_attributes().max_length
        segment = min(chunk, *limits) if str(rule) == "whole" else chunk
        before = handle.internals.put_state
        try:
            manifest, group_id = None, b""
            for batch in _batches(records(root, path, rule, chunk=segment, record_max=record_max)):
                if manifest is None:
                    manifest = parse(batch[0].body)
                messages = [_message(one, record_format, fields) for one in batch]
                group_id = handle.put_many(messages, LOGICAL_IN_UNIT)[-1].group_id
        except BaseException:
            if handle.internals.put_state.group_open or handle.internals.put_state.message_open:
                handle.internals.withdraw(before, whole_group=True)
            raise
    assert manifest is not None, "a file has a manifest"
    return FilePut(manifest, group_id)


def _message(record: Record, record_format: str, fields: Descriptor) -> Message:
    given = fields.copy()
    given["flags"] = record.flags
    given["format"] = FORMAT if record.sequence == 1 else record_format
    if record.offset:
        given.pop("properties", None)  # those of a logical message stand at its first segment
    return Message(record.body, **given)


def _batches(every: Iterator[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    length = 0
    for record in every:
        batch.append(record)
        length += len(record.body)
        if len(batch) >= BATCH_MESSAGES or length >= BATCH_BYTES:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


@contextlib.contextmanager
def _unit(manager: QueueManager) -> Iterator[None]:
    """The unit of work that the call stands in, or one of its own."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(manager.unit_of_work())
        except CallerError as refused:
            if refused.reason != Reason.UOW_IN_PROGRESS:
                raise
        yield


def get_file(
    manager: QueueManager,
    queue: str,
    target: Root,
    *,
    wait: float = 0,
    match: Match = EVERYTHING,
    existing: Existing = "refuse",
) -> FileGot:
    """Takes one whole group that is a file, and writes the file back.

    Other messages and groups, and groups that are not whole, are passed over. It is part of the unit of work that is
    open, or makes one of its own; the file is on disk, under its name, before that is committed. So after a crash the
    file may be there and its group on the queue again: `existing="same"` takes that as done.

    If it fails no file is made, and the group goes back to its place: by itself if the unit was the call's own, else
    when the caller backs out, which it must.

    Memory holds a batch of 1 MiB, or one record.

    Args:
        target: a folder that is there; the file comes below it, at the manifest's path.
        wait: seconds to wait until a whole group is there, from 0; or `FOREVER`.
        match: which file: what the descriptor of its manifest must have, beside the format `INOFILE`.
        existing: "refuse" what is at the path; accept the "same" bytes; "replace" it.

    Raises: NoMessageAvailable 2033; ManifestError; RebuildError, the group is not what its manifest says; UnsafePath;
    FileExists; FileError; as `Queue.get`.
    """
    if not isinstance(match, Match):
        raise bad_argument("match", match, "a Match", Reason.MATCH_OPTIONS_ERROR)
    if match.fields.get("format", FORMAT) != FORMAT:
        raise bad_argument("match", match, f"one without a format: that of a file is {FORMAT}")
    heads = GetOptions(
        logical=True,
        all_messages=True,
        all_segments=True,
        wait=wait,
        match=Match(selector=match.selector, **{**match.fields, "format": FORMAT}),
        syncpoint=True,
    )
    with _unit(manager), manager.open(queue, input="as_queue") as handle:
        head = handle.get(heads)
        if head.sequence_number != 1 or head.segment_status != "no" or head.group_status == "no":
            raise ManifestError("a message of the format of a manifest is not the first of a group", queue=queue)
        manifest = parse(head.body)
        with Rebuilder(manifest, target, existing=existing) as file:
            for body, begins in _following(handle, manifest, head):
                file.add(body, begins=begins)
            path = file.finish()
    return FileGot(manifest, head.group_id, path)


def _following(handle: Queue, manifest: Manifest, head: Message) -> Iterator[tuple[bytes, bool]]:
    """The rest of a group, in order, segment by segment: its bytes, and whether a logical message begins."""
    options = GetOptions(logical=True, syncpoint=True, match=Match(group_id=head.group_id))
    is_last = _ends_group(head)
    while not is_last:
        try:
            messages = handle.get_many(_batch_size(manifest), options)
        except NoMessageAvailable:
            raise RebuildError(f"{manifest.path!r}: the group ends in its middle", path=manifest.path) from None
        for message in messages:
            yield message.body, message.offset == 0
        is_last = _ends_group(messages[-1])


def _batch_size(manifest: Manifest) -> int:
    """How many messages of that file are a batch: one segment of a whole file."""
    if isinstance(manifest.split_rule, Whole):
        return 1
    mean = manifest.size // max(1, manifest.messages)
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES // max(1, mean)))


def _ends_group(message: Message) -> bool:
    flags = message.flags
    return bool(flags & LAST_IN_GROUP) and (not flags & SEGMENT or bool(flags & LAST_SEGMENT))


__all__ = ["FileGot", "FilePut", "get_file", "put_file"]
