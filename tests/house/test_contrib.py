"""Strict checks of `contrib/`, without installing it: systemd units, and files for containers and Kubernetes."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from tests.helpers.pages import parse

import inorder
from inorder.mq.mqsc.running import run_script

CONTRIB = Path(__file__).parents[2] / "contrib"
UNITS, CONTAINER = sorted((CONTRIB / "systemd").glob("*.service")), CONTRIB / "Containerfile"
SERVER, SHARED = CONTRIB / "systemd/inorder-serve.service", CONTRIB / "systemd/inorder-.service.d/sandbox.conf"
PROGRAM = "/opt/inorder/bin/inorder"
STATE = "/var/lib/inorder"
EXTRA_OF = {"serve": "server", "work": "work"}
EXPOSURE_MAX = 25  # tenths, as `systemd-analyze security` counts: below 30 is "OK", a default service has 96

ANALYZE = shutil.which("systemd-analyze")
pytestmark = pytest.mark.nightly
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def value_of(name: str, unit: Path = SERVER) -> str:
    """A setting of a unit. Raises: configparser.Error, a line is no setting; ValueError, not in exactly one section."""
    read = configparser.RawConfigParser(delimiters="=", comment_prefixes="#", strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read([SHARED, unit], encoding="ascii")
    (found,) = [section[name] for section in read.values() if name in section]
    return found


def command_of(unit: Path) -> list[str]:
    """The arguments of its `inorder`, with the variables and the instance filled in."""
    line = value_of("ExecStart", unit).replace("%i", "some.thing")
    name, _, store = value_of("Environment", unit).partition("=")
    program, *arguments = shlex.split(line.replace(f"${{{name}}}", store).replace("${INORDER_OUTBOX}", "shop.db"))
    assert program == PROGRAM
    return arguments


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_systemd_unit_runs_a_command_that_exists(unit: Path) -> None:
    arguments = command_of(unit)
    parse(arguments)
    paths = [one for one in [*arguments, value_of("Environment", unit).partition("=")[2]] if one.startswith("/")]
    assert paths
    assert all(one.startswith(f"{STATE}/") for one in paths), "the unit may write there alone"
    assert value_of("StateDirectory", unit) == Path(STATE).name


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units in a folder, with an existing program, since this machine need not have the installed one."""
    folder = tmp_path / "system"
    shutil.copytree(CONTRIB / "systemd", folder)
    for one in folder.glob("*.service"):
        one.write_text(one.read_text(encoding="ascii").replace(PROGRAM, sys.executable), encoding="ascii")
    return folder


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_a_unit_and_rates_its_exposure_as_low(installed: Path, unit: Path) -> None:
    name = str(installed / unit.name)
    instance = name.replace("@.", "@thing.")
    done = subprocess.run([str(ANALYZE), "verify", "--man=no", instance], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "inorder" in line]) == (0, [])
    words = ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", name]
    done = subprocess.run([str(ANALYZE), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The unit's state folder, with a store, as the unit describes it."""
    folder = tmp_path / Path(STATE).name
    folder.mkdir(mode=int(value_of("StateDirectoryMode"), 8))
    with inorder.connect(folder / "orders.db") as qm:
        qm.create_queue("ORDERS")
    return folder


def started(state: Path) -> subprocess.Popen[str]:
    """Starts the unit's command as systemd does: its umask, a bare environment; but paths here and a free port."""
    found = [one.replace(STATE, str(state)) for one in command_of(SERVER)]
    return subprocess.Popen(
        [sys.executable, "-m", "inorder", *found, "--port", "0"],
        cwd="/",
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)},
        umask=int(value_of("UMask"), 8),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_unit_s_command_serves_stops_and_starts_again(state: Path) -> None:
    tokens = set()
    for _ in range(2):
        server = started(state)
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert found, said + server.communicate()[1]
            tokens.add((state / "launch-token").read_text())
            headers = {"Authorization": f"Bearer {max(tokens).strip()}", "ibm-mq-rest-csrf-token": ""}
            with httpx.Client(base_url=found[0], headers=headers, timeout=60) as client:
                assert client.get("/ready").status_code == 200
                assert client.post("/inorder/v1/queues/ORDERS/put", json={"body": "x"}).status_code == 201
            modes = {one.name: one.stat().st_mode & 0o777 for one in state.iterdir()}
            assert set(modes.values()) == {0o600}, modes
            server.send_signal(signal.SIGTERM)
            said, log = server.communicate(timeout=240)
        finally:
            server.kill()
            server.wait()
        assert server.returncode == 0, "what Restart=on-failure would start again"
        assert "Traceback" not in log
        assert not any(token.strip() in said + log for token in tokens)
    assert len(tokens) == 1, "a restart keeps the token"
    with inorder.connect(state / "orders.db") as qm:
        assert qm.depth("ORDERS") == 2


# --- the container file


def instructions() -> Iterator[tuple[str, str]]:
    lines = [line for line in CONTAINER.read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    for one in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if one:
            name, _, rest = one.partition(" ")
            yield name, rest


def test_the_container_s_process_is_not_root_and_writes_its_volume() -> None:
    found = list(instructions())
    (user,) = [rest for name, rest in found if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    uid, _, gid = user.partition(":")
    assert f"--uid {uid} --gid {gid} --home-dir {STATE} " in "".join(rest for _, rest in found)
    after = [name for name, _ in found][[name for name, _ in found].index("USER") :]
    assert "RUN" not in after
    assert "COPY" not in after
    by_name = dict(found)
    assert by_name["VOLUME"] == by_name["WORKDIR"] == STATE
    assert by_name["EXPOSE"] == "9443"
    (program,) = json.loads(by_name["ENTRYPOINT"])
    assert program == PROGRAM
    assert json.loads(by_name["CMD"]) == ["serve", "--help"]


def test_the_container_s_command_line_runs() -> None:
    by_name = dict(instructions())
    (program,), words = json.loads(by_name["ENTRYPOINT"]), json.loads(by_name["CMD"])
    assert program == PROGRAM
    for arguments in (words, ["--version"]):
        ran = subprocess.run([sys.executable, "-m", "inorder", *arguments], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    text = (CONTRIB.parent / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    calls = re.findall(r"docker run [^\n]*? inorder((?: \\\n)?[^\n]*(?:\\\n[^\n]*)*)", text)
    assert len(calls) >= 3
    for one in calls:
        parse(shlex.split(one.replace("\\\n", " ")))


def test_compose_services_and_kubernetes_containers_run_commands_that_exist(tmp_path: Path) -> None:
    compose = yaml.safe_load((CONTRIB / "compose.yml").read_text(encoding="ascii"))
    services = compose["services"].values()
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    definitions, _, claims = yaml.safe_load_all((CONTRIB / "kubernetes.yaml").read_text(encoding="ascii"))
    pod = claims["spec"]["template"]["spec"]
    for arguments in (
        *(shlex.split(one["command"]) for one in services),
        *(one["args"] for one in (*pod["initContainers"], *pod["containers"])),
    ):
        parse([one.replace("/run/certificate", str(tmp_path)) for one in arguments])
    [extras] = re.findall(r"\[([\w,]+)\]\"", CONTAINER.read_text(encoding="ascii"))
    run = {shlex.split(one["command"])[0] for one in services} | {one["args"][0] for one in pod["containers"]}
    assert {EXTRA_OF[one] for one in run} <= set(extras.split(","))
    claimed = {one["metadata"]["name"] for one in claims["spec"]["volumeClaimTemplates"]}
    volumes = claimed | {one["name"] for one in pod["volumes"]}
    for one in (*pod["initContainers"], *pod["containers"]):
        assert {mount["name"] for mount in one["volumeMounts"]} <= volumes
        assert {"name": "INORDER_STORE", "value": f"{STATE}/orders.db"} in one["env"]
    assert {volume.partition(":")[0] for one in services for volume in one["volumes"]} == set(compose["volumes"])
    user = next(rest for name, rest in instructions() if name == "USER")
    assert user.startswith(f"{pod['securityContext']['runAsUser']}:")
    [script] = definitions["data"].values()
    with inorder.connect() as qm:
        answers = list(run_script(script.splitlines(), qm))
    assert [one.outcome for one in answers] == ["done"]
