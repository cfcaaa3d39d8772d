"""Advice in errors: words and store names of other libraries, and the installation of extras."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import inorder
from inorder import ArgumentError, QueueManager
from inorder.arrow.columns import COLUMNS
from inorder.client.keywords import BROWSE_OPTIONS, GET_OPTIONS, PutCall
from inorder.model.attributes import QueueAttributes
from inorder.spark.options import OPTIONS
from inorder.support.advice import FOREIGN_WORDS, how_to_install
from inorder.work import Tasks

ROOT = Path(__file__).parents[2]
task: Callable[..., object] = partial(Tasks().task, "Q")
periodic: Callable[..., object] = partial(Tasks().periodic, "30 2 * * *", queue="Q")
PLACES = (
    PutCall.__annotations__,
    GET_OPTIONS,
    BROWSE_OPTIONS,
    QueueAttributes.__annotations__,
    COLUMNS,
    [one.name for one in OPTIONS],
)


def test_each_word_of_another_library_is_mapped_to_one_of_ours_and_is_not_one_itself() -> None:
    ours = {name for place in PLACES for name in place}
    of_work = {*inspect.signature(Tasks.task).parameters, *inspect.signature(Tasks.periodic).parameters}
    for word, entries in FOREIGN_WORDS.items():
        assert word == word.lower()
        assert {name for name, _ in entries} <= ours | of_work, word
        assert word not in {name.lower() for name in ours}, word


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda qm: qm.get("Q", timeout=5), "option must be wait=SECONDS, .*, not 'timeout'"),
        (lambda qm: qm.get("Q", block=False), "wait=SECONDS"),
        (lambda qm: qm.browse("Q", timeout=5), "wait=SECONDS"),
        (lambda qm: qm.put("Q", b"1", timeout=5), "never waits: a full queue raises QueueFull"),
        (lambda qm: qm.get("Q", wait_interval=5000), "option must be wait=SECONDS, .*, not 'wait_interval'"),
        (lambda qm: qm.get("Q", gmo=1), "option must be left out: each option is a keyword of its own, .*, not 'gmo'"),
        (lambda qm: qm.put("Q", b"1", countdown=5), "field or option must be delay=SECONDS, .*, not 'countdown'"),
        (lambda qm: qm.put("Q", b"1", eta=5), "delay=SECONDS"),
        (lambda qm: qm.put("Q", b"1", headers={}), r"field or option must be properties=\{NAME: VALUE\}"),
        (lambda qm: qm.create_queue("R", maxsize=5), "no attribute 'maxsize': write max_depth"),
        (lambda qm: qm.put("Q", {"a": 1}), r"body must be bytes: write json\.dumps\(\.\.\.\)\.encode\(\)"),
        (lambda qm: qm.put_many("Q", [[1, 2]]), r"json\.dumps"),
        (
            lambda _: task(block=True),
            "keyword must be left out: a worker waits for messages as long as it runs, not 'block'",
        ),
        (
            lambda _: task(countdown=5),
            r"left out: the put of the message says it, as qm\.put\(QUEUE, BODY, delay=SECONDS\)",
        ),
        (lambda _: task(eta=5), "delay=SECONDS"),
        (lambda _: task(expires=5), "expiry=SECONDS"),
        (lambda _: task(job_timeout=5), "timeout=SECONDS, the longest time that a call may take"),
        (lambda _: task(max_retries=5), "attempts=NUMBER"),
        (lambda _: task(default_retry_delay=5), r"Backoff\(first=SECONDS\)"),
        (lambda _: task(thread=5), "did you mean threads"),
        (lambda _: periodic(timeout=5), r"left out: .* has timeout=SECONDS, not 'timeout'"),
        (lambda _: periodic(countdown=5), "left out: cron says when"),
        (lambda _: periodic(run_every=5), "cron, the first argument"),
        (lambda _: periodic(timezone="UTC"), "did you mean zone"),
    ],
)
def test_an_argument_of_another_library_is_refused_with_our_words(
    qm: QueueManager, call: Callable[[Any], object], told: str
) -> None:
    with pytest.raises(ArgumentError, match=told):
        call(qm)


@pytest.mark.parametrize(
    ("store", "meant"),
    [
        ("file:x?mode=ro", "'x'"),
        ("file:///a/b%20c.db?mode=ro", "'/a/b c.db'"),
        ("sqlite:////a/x", "'/a/x'"),
        ("sqlite+pysqlite:///x.db", "'x.db'"),
        ("sqlite://", "':memory:'"),
    ],
)
def test_a_store_named_in_the_style_of_another_library_is_refused_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=f"store must be .*path.*{re.escape(meant)}"):
        inorder.connect(store)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        ({"url": "file:///src/in%20order", "dir_info": {}}, "pip install '/src/in order[spark,report]'"),
        ({"url": "file:///src/in", "dir_info": {"editable": True}}, "pip install -e '/src/in[spark,report]'"),
        (
            {"url": "file:///a/inorder-0.1.1.whl", "archive_info": {}},
            "pip install '/a/inorder-0.1.1.whl[spark,report]'",
        ),
        ({"url": "https://a/b.whl", "archive_info": {}}, "pip install 'inorder[spark,report] @ https://a/b.whl'"),
        (
            {"url": "https://a/b", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "pip install 'inorder[spark,report] @ git+https://a/b@c0ffee'",
        ),
        (None, "pip install 'inorder[spark,report]'"),
    ],
    ids=["folder", "editable", "wheel", "wheel elsewhere", "repository", "index"],
)
def test_extras_are_installed_as_this_copy_was(
    monkeypatch: pytest.MonkeyPatch, noted: dict[str, Any] | None, command: str
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if noted is None else json.dumps(noted)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert how_to_install("spark", "report") == command


def test_a_copy_of_the_source_that_was_not_installed_is_named_by_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert how_to_install("spark") == f"pip install '{ROOT}[spark]'"


def test_no_text_advises_an_index_that_lacks_the_package() -> None:
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    wrong = re.compile(r"pip install\s+'?inorder\[")
    assert [str(path) for path in texts if wrong.search(path.read_text(encoding="utf-8"))] == []
