"""Puts files on queues as groups, and gets groups back into files; inside a unit of work if one is open."""

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
    """The result of putting a file: its manifest, and the id of its group."""

    manifest: Manifest
    group_id: bytes


class FileGot(NamedTuple):
    """The result of getting a file: its manifest, the id of its group, and its path."""

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
    """Puts a file as one group: its manifest, with the format `INOFILE`, then its records.

    It joins the open unit of work, or makes its own. If it fails, it leaves nothing in the unit. Memory holds a batch
    of 1 MiB in addition to the longest record.

    Args:
        root: a folder.
        path: the path of the file below it, and in the manifest.
        rule: how to split the file: a rule or its text; see `inorder.formats.splitting`.
        chunk: bytes read at a time, and bytes in a segment for the rule `whole`, fewer if the queue's limit is lower.
        record_max: the most bytes that a record may have.
        record_format: the format in the records' descriptors, at most 8 characters.
        **fields: fields of the descriptor of all messages, for example `priority`; not the fields of the group.

    Raises as `records`, and as `Queue.put`; UnitTooLarge 2024 if the file has more records than a unit may hold.
    """
    for name in sorted(OURS & fields.keys()):
        raise bad_argument("field", name, "one that does not set a message's group, or its kind")
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
        given.pop("properties", None)  # the properties of a logical message belong to its first segment
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
    """The open unit of work, or one for this call."""
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
    """Gets one whole group of a file, and writes the file.

    Other messages and groups, and incomplete groups, are skipped. It joins the open unit of work, or makes its own; the
    file is on disk, under its name, before that is committed. So after a crash the file may exist while its group is on
    the queue again: `existing="same"` accepts that.

    If it fails, no file is made, and the group returns to its place: by itself if the unit was the call's own,
    otherwise when the caller backs out, which it must.

    Memory holds a batch of 1 MiB, or one record.

    Args:
        target: an existing folder; the file is written below it, at the manifest's path.
        wait: seconds to wait for a whole group, from 0; or `FOREVER`.
        match: which file: a condition on its manifest, in addition to the format `INOFILE`.
        existing: what to do if the path exists: "refuse"; accept a file with the "same" bytes; "replace" it.

    Raises NoMessageAvailable 2033; ManifestError; RebuildError if the group does not match its manifest; UnsafePath;
    FileExists; FileError; as `Queue.get`.
    """
    if not isinstance(match, Match):
        raise bad_argument("match", match, "a Match", Reason.MATCH_OPTIONS_ERROR)
    if match.fields.get("format", FORMAT) != FORMAT:
        raise bad_argument("match", match, f"one without a format: the format of a file is {FORMAT}")
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
            raise ManifestError("a message with the format of a manifest is not the first of a group", queue=queue)
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
            raise RebuildError(f"{manifest.path!r}: the group is incomplete", path=manifest.path) from None
        for message in messages:
            yield message.body, message.offset == 0
        is_last = _ends_group(messages[-1])


def _batch_size(manifest: Manifest) -> int:
    """The number of messages of this file in a batch; for a whole file one segment."""
    if isinstance(manifest.split_rule, Whole):
        return 1
    mean = manifest.size // max(1, manifest.messages)
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES // max(1, mean)))


def _ends_group(message: Message) -> bool:
    flags = message.flags
    return bool(flags & LAST_IN_GROUP) and (not flags & SEGMENT or bool(flags & LAST_SEGMENT))
