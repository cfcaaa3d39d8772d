"""The demonstration shows what the documents say, and notices differences; none of its processes hangs."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import demo
import pytest
from demo import pictures, processes, readers
from demo.__main__ import main
from demo.processes import Cast, ProcessFailed
from demo.screen import Screen

import inorder
from inorder.model.attributes import OrderRule
from inorder.model.options import AskedOrder


@pytest.fixture(scope="module")
def cast() -> Iterator[Cast]:
    with Cast((*readers.WRITERS, *readers.READERS)) as cast:
        yield cast


@pytest.mark.gate
def test_the_demonstration_runs_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    told = capsys.readouterr().out
    assert told.rstrip().endswith("All 20 as documented.")
    assert "\033[" not in told, "no colours where nobody looks"
    assert told.count("  as documented: ") == 20
    path = Path(next(word for word in told.split() if word.endswith("demo.db.")))
    assert not path.parent.exists(), "something was left behind"


@pytest.mark.nightly
@pytest.mark.parametrize(("order", "asked"), readers.DOCUMENTED)
def test_the_tables_in_the_docs_are_drawn_from_a_run(cast: Cast, order: OrderRule, asked: AskedOrder) -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/order.md").read_text(encoding="utf-8")
    drawn = "\n".join(readers.table(readers.four_readers(cast, order, asked)))
    assert drawn in page, f"paste into docs/explanation/order.md, {order} order, {asked}:\n{drawn}"


def test_differences_from_the_documents_are_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "LOGICAL", pictures.PHYSICAL)
    monkeypatch.setattr(demo, "PARTS", demo.PARTS[:1])
    monkeypatch.setattr(demo, "EARLY", ())
    assert main(["order"]) == 1
    told = capsys.readouterr().out
    assert "NOT AS DOCUMENTED" in told
    assert told.rstrip().endswith("2 NOT as documented, 2 are.")


def test_a_process_that_fails_ends_the_demonstration_with_its_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(screen: Screen, cast: Cast) -> None:
        cast.process("A").do("put", queues=["NO.SUCH.QUEUE"], name="m")

    monkeypatch.setattr(demo, "PARTS", (part,))
    monkeypatch.setattr(demo, "EARLY", ())
    assert demo.main() == 2
    told = capsys.readouterr().err
    assert "process 'A' ended with status 1 in 'put'" in told
    assert "UnknownQueue" in told


def test_a_process_that_does_not_answer_is_reported(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, waiting = cast.new_queue(), cast.process("waits in vain")
    waiting.do("browse", queue=queue)
    monkeypatch.setattr(processes, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(ProcessFailed, match="'waits in vain' gave no answer to 'take'"):
        waiting.do("take", queue=queue)
    with pytest.raises(ProcessFailed, match="no reader waits"):
        cast.await_waiter(cast.new_queue())


@pytest.mark.nightly
def test_a_process_in_a_waiting_call_ends_with_the_demonstration(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        worker = subprocess.Popen(
            [sys.executable, "-m", "demo.worker", str(path), "orphan"], stdin=subprocess.PIPE, text=True
        )
        _, _ = worker.communicate('["take", {"queue": "Q"}]\n', timeout=240)
        assert worker.returncode == 1


@pytest.mark.parametrize(("store", "ended"), [("", 0), ("STORE=sqlite", 0), ("STORE=postgresql", 2)])
def test_the_command_of_the_readme_runs_the_demonstration_of_the_store(
    store: str, ended: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["make", "--no-print-directory", "-n", "demo", "DIR=a folder", *store.split()]
    made = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    taken: list[tuple[object, ...]] = []
    monkeypatch.setattr("demo.files.main", lambda *given: len(taken.append(given) or ()))  # type: ignore[func-returns-value]
    monkeypatch.setattr("tests.stores.postgresql.server.missing", lambda: "no server here")
    assert main(shlex.split(made.stdout.split("-m demo ")[1])) == ended
    assert taken == ([("a folder", "build/demo")] if ended == 0 else [])
    assert ("no server here" in capsys.readouterr().err) == bool(ended)
