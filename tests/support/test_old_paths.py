"""The import paths and names of 0.1.0."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import inorder
from inorder.model.attributes import ManagerAttributes
from inorder.support.old_paths import LEFT_THE_ROOT, MOVED

PICKLED_BY_0_1_0 = (
    b"ccopy_reg\n_reconstructor\np0\n(cinorder.attributes\nManagerAttributes\np1\nc__builtin__\nobject\np2\nNtp3\n"
    b"Rp4\n(lp5\nVSHOP\np6\naVd\np7\naI1000000\naI9\naI104857600\naI256\naI1208\naF5.0\naV\np8\naF999999.999\n"
    b"ag8\naI10000\nab."
)


@pytest.mark.parametrize(("old", "now"), [*MOVED.items(), ("inorder.channels.sides", "inorder.mq.channels.sides")])
def test_an_old_path_leads_to_the_module_with_a_warning(old: str, now: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(old.rpartition(".")[0])
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {now}; the old path ends with 0.3") as warned:
        found = import_module(old)
    assert found is import_module(now)
    assert found.__name__ == now
    assert found.__spec__
    assert found.__spec__.name == now
    assert len([one for one in warned if str(one.message).startswith(f"{old} ")]) == 1


def test_a_value_pickled_under_an_old_path_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pickle.dumps(inorder.Match(priority=3), protocol=0).replace(b"inorder.model.options", b"inorder.options")
    monkeypatch.delitem(sys.modules, "inorder.options", raising=False)
    with pytest.warns(DeprecationWarning, match="inorder.options has moved"):
        assert pickle.loads(kept) == inorder.Match(priority=3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_attributes_of_a_queue_manager_that_were_pickled_by_0_1_0_can_be_read() -> None:
    assert pickle.loads(PICKLED_BY_0_1_0) == ManagerAttributes(name="SHOP", description="d")


VALUES = {  # once public in the root, by the modules that pickles of 0.1.0 name
    "ManagerAttributes QueueAttributes QueueStatus": "attributes",
    "Message Place Transmission UniqueId": "message",
    "GetOptions Match OpenOptions PutOptions": "options",
    "ProcessAttributes": "process_attributes",
    "Locked": "stores.records",
    "Observation StoreEvent": "stores.telemetry",
    "OrderView Unit": "stores.views",
    "Properties": "properties",
    "PutResult": "rules.puts",
    "TriggerMessage": "trigger_monitor",
    "Upgraded": "stores.migrations",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "old"), [(name, old) for names, old in VALUES.items() for name in names.split()])
def test_each_public_value_is_found_where_pickles_look_for_it(name: str, old: str) -> None:
    assert getattr(import_module(f"inorder.{old}"), name) is getattr(inorder, name)


RENAMED = {
    "inorder.client.inspection.Sight": "MessageView",
    "inorder.stores.seam.views.Sight": "MessageView",
    "inorder.testing.Failure": "inorder_scenarios.ScenarioFailure",
    **{
        f"inorder.testing.{name}": f"inorder_scenarios.{name}"
        for name in ("Scenario", "TableError", "read_scenarios", "run_scenario")
    },
    "inorder.work.periodic.Run": "ScheduledRun",
    "inorder.spark.jobs.Replayed": "ReplayResult",
}


@pytest.mark.parametrize("old", RENAMED)
def test_a_class_is_found_by_its_old_name_with_one_warning(old: str) -> None:
    place, _, name = old.rpartition(".")
    module: ModuleType = pytest.importorskip(place)
    taken: dict[str, object] = {}
    with pytest.warns(
        DeprecationWarning, match=rf"^{old} is now {RENAMED[old]}; the old name ends with 0\.3$"
    ) as warned:
        exec(f"from {place} import {name}", taken)
    where, _, now = RENAMED[old].rpartition(".")
    assert taken[name] is getattr(import_module(where or place), now)
    assert len(warned) == 1
    with pytest.raises(AttributeError, match=f"module '{place}' has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018


def test_a_path_that_never_existed_is_not_found() -> None:
    for name in ("inorder.nothing", "inorder.client.nothing"):
        with pytest.raises(ModuleNotFoundError):
            import_module(name)


@pytest.mark.parametrize("name", LEFT_THE_ROOT)
def test_a_name_that_was_removed_from_the_root_still_works_with_a_warning(name: str) -> None:
    now = LEFT_THE_ROOT[name]
    text = re.escape(f"inorder.{name} is now {now}.{name}; the old name ends with 0.3")
    with pytest.warns(DeprecationWarning, match=f"^{text}$") as warned:
        found = getattr(inorder, name)
    assert warned[0].filename == __file__
    assert found is getattr(import_module(now), name)
    assert name in vars(import_module(now)).get("__all__", [name])
    assert name not in {*inorder.__all__, *dir(inorder), *vars(inorder)}


def test_the_runner_of_scenarios_still_has_its_old_command() -> None:
    command = [sys.executable, "-m", "inorder.testing", "tests/scenarios/backout.txt", "--store", "sqlite"]
    told = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert told.stdout.endswith(" passed, 0 failed\n")
    assert "python -m inorder.testing is now python -m inorder_scenarios; the old name ends with 0.3" in told.stderr


@pytest.mark.parametrize(
    "program", ["from inorder import UnitExists", "import inorder; inorder.errors; inorder.UnitExists"]
)
def test_an_old_name_warns_only_once_at_the_line_that_uses_it(program: str) -> None:
    told = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True)
    line = "<string>:1: DeprecationWarning: inorder.UnitExists is now inorder.errors.UnitExists;"
    assert (told.stderr.startswith(line), told.stderr.count("inorder.UnitExists is now")) == (True, 1)


@pytest.mark.parametrize("program", ["import inorder; inorder.bulk.Stager", "from inorder import bulk; bulk.Stager"])
def test_an_old_module_is_an_attribute_of_the_root_too(program: str) -> None:
    told = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True)
    warned = [line for line in told.stderr.splitlines() if "Warning" in line]  # Python 3.13 shows the program, too
    assert warned == [
        "<string>:1: DeprecationWarning: inorder.bulk has moved to inorder.client.bulk; the old path ends with 0.3"
    ]


def test_a_star_import_imports_only_the_public_names() -> None:
    taken: dict[str, object] = {}
    exec("from inorder import *", taken)
    assert sorted(taken.keys() - {"__builtins__"}) == sorted(inorder.__all__)


def test_a_name_that_never_existed_is_not_found() -> None:
    with pytest.raises(AttributeError, match="module 'inorder' has no attribute 'Nothing'"):
        inorder.Nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'inorder'"):
        exec("from inorder import Nothing")
