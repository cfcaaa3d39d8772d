"""What `contrib/` has: a unit of systemd and a container file, read as strictly as is possible without running them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pages import parse

CONTRIB = Path(__file__).parents[1] / "contrib"
UNIT, CONTAINER = CONTRIB / "inorder.service", CONTRIB / "Containerfile"
PROGRAM = "/opt/inorder/bin/inorder"
STATE = "/var/lib/inorder"
EXPOSURE_MAX = 25  # tenths, as `systemd-analyze security` counts: below 30 is "OK", a service as it comes is 96

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def settings() -> list[tuple[str, str, str]]:
    """Section, name and value of each line of the unit. A line that is none of these fails."""
    found, section = [], ""
    for line in UNIT.read_text(encoding="ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = heading[1]
            continue
        setting = re.fullmatch(r"(\w+)=(.*\S)?", line)
        assert setting, f"{line!r} is no setting"
        found.append((section, setting[1], setting[2] or ""))
    return found


def value_of(name: str) -> str:
    (found,) = [value for _, each, value in settings() if each == name]
    return found


def test_the_unit_runs_a_command_that_there_is() -> None:
    program, *arguments = shlex.split(value_of("ExecStart"))
    assert program == PROGRAM
    parse(arguments)
    paths = [one for one in arguments if one.startswith("/")]
    assert paths
    assert all(one.startswith(f"{STATE}/") for one in paths), "the unit may write there alone"
    assert value_of("StateDirectory") == Path(STATE).name


def test_the_unit_gives_no_more_than_is_needed() -> None:
    given = {name: value for _, name, value in settings()}
    assert given["User"] == given["Group"] == "inorder"
    assert given["CapabilityBoundingSet"] == given["AmbientCapabilities"] == ""
    assert (given["ProtectSystem"], given["StateDirectoryMode"], given["UMask"]) == ("strict", "0700", "0077")
    assert given["NoNewPrivileges"] == given["ProtectHome"] == given["PrivateTmp"] == "yes"
    assert int(given["TimeoutStopSec"]) > 30, "the server gives requests 30 seconds"
    assert int(given["LimitNOFILE"]) > 2000, "a worker takes 2,000 connections"


def test_each_setting_stands_in_a_section_that_knows_it() -> None:
    of_unit, of_install = {"Description", "Documentation", "After", "Wants"}, {"WantedBy"}
    for section, name, _ in settings():
        assert section in ("Unit", "Service", "Install")
        assert (name in of_unit) == (section == "Unit"), name
        assert (name in of_install) == (section == "Install"), name


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


# --- the container file


def instructions() -> Iterator[tuple[str, str]]:
    lines = [line for line in CONTAINER.read_text(encoding="ascii").splitlines() if not line.startswith("#")]
    for one in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if one:
            name, _, rest = one.partition(" ")
            yield name, rest


def test_the_container_is_of_debian_packages_and_wheels() -> None:
    found = list(instructions())
    assert [rest for name, rest in found if name == "FROM"] == ["debian:bookworm-slim"]
    assert {name for name, _ in found} <= {
        "FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    (copied,) = [rest for name, rest in found if name == "COPY"]
    assert copied.startswith("dist/*.whl ")
    runs = [rest for name, rest in found if name == "RUN"]
    for run in runs:
        subprocess.run(["sh", "-n", "-c", run], check=True)
        assert not re.search(r"\b(curl|wget|git|sudo|chmod 777)\b", run)
        assert ("apt-get install" in run) == ("rm -rf /var/lib/apt/lists/*" in run), "in the same layer"
        assert ("apt-get install" in run) == ("--no-install-recommends" in run)
        assert ("pip install" in run) == ("--only-binary :all:" in run)


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
