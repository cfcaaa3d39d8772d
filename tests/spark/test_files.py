"""How files are dealt to the tasks that read them. Nothing here starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from inorder.formats import FileError
from inorder.spark import files
from inorder.spark.files import FILE_BYTES, TASK_BYTES, FilesReader, Paths, dealt


def sizes_of(weights: list[int], tasks: int) -> list[int]:
    """How many files each task gets."""
    names = [f"{number:05}" for number in range(len(weights))]
    parts = dealt(names, weights, tasks)
    assert [name for part in parts for name in part.paths] == names, "each file once, in their order"
    return [len(part.paths) for part in parts]


def test_many_small_files_are_few_tasks() -> None:
    assert len(sizes_of([FILE_BYTES + 10_240] * 5000, 2)) == 3


def test_there_are_as_many_tasks_as_can_run_at_once() -> None:
    assert sizes_of([FILE_BYTES] * 8, 4) == [2, 2, 2, 2]


def test_there_is_no_task_without_a_file() -> None:
    assert sizes_of([FILE_BYTES] * 3, 16) == [1, 1, 1]


def test_large_files_are_many_tasks() -> None:
    assert sizes_of([TASK_BYTES] * 5, 2) == [1, 1, 1, 1, 1]


def test_tasks_are_of_equal_weight_not_of_equally_many_files() -> None:
    assert sizes_of([80, *[10] * 8], 2) == [1, 8]


def test_a_file_heavier_than_all_others_is_a_task_of_its_own() -> None:
    assert sizes_of([10, 10, 1000, 10], 4) == [2, 1, 1]


def test_a_folder_without_files_is_one_empty_task() -> None:
    assert [part.paths for part in dealt([], [], 4)] == [[]]


def reader(root: Path, tasks: int) -> FilesReader:
    options = {"root": str(root), "split": "whole", "seed": "x", "patterns": '["**"]', "exclude": "[]"}
    return FilesReader(options | {"tasks": str(tasks)})


def test_the_weight_of_a_file_is_its_length(tmp_path: Path) -> None:
    for name, length in {"a": 9 * FILE_BYTES, "b": 0, "c": 0, "d/e": 0}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(length))
    parts = reader(tmp_path, 2).partitions()
    assert [part.paths for part in parts if isinstance(part, Paths)] == [["a"], ["b", "c", "d/e"]]


def test_a_file_that_goes_while_it_is_planned_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "folder", lambda *_, **__: iter(["gone"]))
    with pytest.raises(FileError, match="'gone': No such file"):
        reader(tmp_path, 2).partitions()
