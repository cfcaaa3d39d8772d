"""What `contrib/` has: a unit of systemd and a container file, read as strictly as is possible without running them."""

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
from tests.helpers.pages import parse

import inorder

CONTRIB = Path(__file__).parents[2] / "contrib"
UNIT, CONTAINER = CONTRIB / "inorder.service", CONTRIB / "Containerfile"
PROGRAM = "/opt/inorder/bin/inorder"
STATE = "/var/lib/inorder"
EXPOSURE_MAX = 25  # tenths, as `systemd-analyze security` counts: below 30 is "OK", a service as it comes is 96

ANALYZE = shutil.which("systemd-analyze")
pytestmark = pytest.mark.nightly
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def value_of(name: str) -> str:
    """A setting of the unit. Raises: configparser.Error, a line is none or comes twice."""
    unit = configparser.RawConfigParser(delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT, encoding="ascii")
    (found,) = [section[name] for section in unit.values() if name in section]
    return found


def test_the_unit_runs_a_command_that_there_is() -> None:
    program, *arguments = shlex.split(value_of("ExecStart"))
    assert program == PROGRAM
    parse(arguments)
    paths = [one for one in arguments if one.startswith("/")]
    assert paths
    assert all(one.startswith(f"{STATE}/") for one in paths), "the unit may write there alone"
    assert value_of("StateDirectory") == Path(STATE).name


@needs_systemd
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """With a program that is there: what is installed where is not this machine's business."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text(encoding="ascii").replace(PROGRAM, sys.executable), encoding="ascii")
    done = subprocess.run([str(ANALYZE), "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if copy.name in line]) == (0, [])


@needs_systemd
def test_systemd_says_that_little_is_exposed(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_bytes(UNIT.read_bytes())
    words = ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(copy)]
    done = subprocess.run([str(ANALYZE), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The unit's state folder, with a store, as its page says."""
    folder = tmp_path / Path(STATE).name
    folder.mkdir(mode=int(value_of("StateDirectoryMode"), 8))
    with inorder.connect(folder / "orders.db") as qm:
        qm.create_queue("ORDERS")
    return folder


def started(state: Path) -> subprocess.Popen[str]:
    """The unit's command line as systemd starts it: its paths here, its umask, a bare environment, and a free port."""
    program, *arguments = shlex.split(value_of("ExecStart"))
    assert program == PROGRAM
    found = [one.replace(STATE, str(state)) for one in arguments]
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
    text = (CONTRIB.parent / "docs/how-to/http.md").read_text(encoding="utf-8")
    calls = re.findall(r"docker run [^\n]*? inorder((?: \\\n)?[^\n]*(?:\\\n[^\n]*)*)", text)
    assert len(calls) >= 3
    for one in calls:
        parse(shlex.split(one.replace("\\\n", " ")))
