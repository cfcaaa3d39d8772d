"""The distribution of files to the tasks that read them. Nothing here starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from inorder.formats import FileError
from inorder.spark import files
from inorder.spark.files import FILE_BYTES, TASK_BYTES, FilesReader, Paths, dealt


def sizes_of(weights: list[int], tasks: int) -> list[int]:
    """The number of files of each task."""
    names = [f"{number:05}" for number in range(len(weights))]
    parts = dealt(names, weights, tasks)
    assert [name for part in parts for name in part.paths] == names, "each file once, in their order"
    return [len(part.paths) for part in parts]


SMALL = FILE_BYTES + 10_240


@pytest.mark.parametrize(
    ("weights", "tasks", "sizes"),
    [
        ([SMALL] * 500, 2, [250, 250]),
        ([FILE_BYTES] * 3, 16, [1, 1, 1]),  # no task is left without a file
        ([TASK_BYTES] * 5, 2, [1, 1, 1, 1, 1]),
        ([80, *[10] * 8], 2, [1, 8]),  # by weight, not by number
        ([10, 10, 1000, 10], 4, [2, 1, 1]),
        ([], 4, [0]),
    ],
)
def test_files_are_dealt_by_weight_to_as_many_tasks_as_can_run_at_once(
    weights: list[int], tasks: int, sizes: list[int]
) -> None:
    assert sizes_of(weights, tasks) == sizes


def reader(root: Path, tasks: int) -> FilesReader:
    options = {"root": str(root), "split": "whole", "seed": "x", "patterns": '["**"]', "exclude": "[]"}
    return FilesReader(options | {"tasks": str(tasks)})


def test_the_weight_of_a_file_is_its_length(tmp_path: Path) -> None:
    for name, length in {"a": 9 * FILE_BYTES, "b": 0, "c": 0, "d/e": 0}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(length))
    parts = reader(tmp_path, 2).partitions()
    assert [part.paths for part in parts if isinstance(part, Paths)] == [["a"], ["b", "c", "d/e"]]


def test_a_file_that_disappears_during_planning_is_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "folder", lambda *_, **__: iter(["gone"]))
    with pytest.raises(FileError, match="'gone': No such file"):
        reader(tmp_path, 2).partitions()
