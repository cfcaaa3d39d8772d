"""Builds wheel and sdist, and tests the wheel alone in a fresh environment, without extras.

``python tools/dist.py [FOLDER]``, or ``make dist``. It needs the packages `build` and `mypy`, and a package registry.
With ``--every-python``, which `make nightly` adds, it also tries the wheel on each Python that is installed, with all
extras: the import, README's first example, the command, a server that answers and ends; twine reads the metadata.
The wheel is built twice, from the sdist and from the sources here: both must have the same content, `src` and, until
0.3, the runner of scenario tables. The first fault ends it, with a status other than 0.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from http import HTTPStatus
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for a start as a file
from tools.pythons import VERSIONS, interpreter

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
RUNNER = ROOT / "inorder_scenarios"
SCENARIO = ROOT / "tests/scenarios/put_groups.txt"
IN_SDIST = ("Makefile", "README.md", "SECURITY.md", "docs/limits.md", "tests/client/test_handle.py", "tools/mutants.py")

PROGRAM = """
from __future__ import annotations

from typing_extensions import assert_type

import inorder
from inorder.client.listening import Observation

with inorder.connect(":memory:", program="user") as qm:
    assert_type(qm, inorder.QueueManager)
    qm.create_queue("Q", read_order="strict", max_depth=10)
    assert_type(qm.put("Q", b"1", priority=7), inorder.PutResult)
    assert_type(qm.get("Q").body, bytes)
    observation = qm.inspect.observe(lambda event: print(event.name))
    assert_type(observation, Observation)
"""
WRONG = ('qm.put("Q", b"1", priorty=7)', 'qm.create_queue("Q", read_order="strikt")', "qm.get(5)")


EVERY_PYTHON = "--every-python"
EXTRAS = "arrow,otel,postgresql,prometheus,remote,report,server,spark,work"
SERVER_SECONDS = 120


class DistError(Exception): ...


def main(arguments: list[str]) -> None:
    every_python = EVERY_PYTHON in arguments
    arguments = [one for one in arguments if one != EVERY_PYTHON]
    with tempfile.TemporaryDirectory(prefix="inorder-dist-") as folder:
        work = Path(folder)
        out = Path(arguments[0]).resolve() if arguments else work / "dist"
        sdist, wheel = build(out, work)
        check_content(sdist, wheel)
        if every_python:
            try_every_python(sdist, wheel, work)
        python = installed(wheel, work / "venv")
        try_command(python, wheel)
        try_readme(python, work)
        try_old_names(python, work)
        try_types(python, work)
        try_library(python, out, work)
    print(f"{wheel.name}, {sdist.name}: no faults")


def run(*command: str | Path, cwd: Path, refused: bool = False) -> str:
    """Runs a command without this folder on its path; returns its output. Raises: DistError, a wrong exit status."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if bool(done.returncode) != refused:
        raise DistError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(out: Path, work: Path) -> tuple[Path, Path]:
    """Builds the sdist, and the wheel from it, which must equal the wheel from the sources."""
    for old in (*out.glob("inorder-*"), *out.glob("inorder_mqi-*")):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", out, cwd=ROOT)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", work / "direct", cwd=ROOT)
    [sdist], [wheel], [direct] = out.glob("*.tar.gz"), out.glob("*.whl"), (work / "direct").glob("*.whl")
    if contents(wheel) != contents(direct):
        raise DistError("the wheel of the sdist is another one than that of the sources")
    return sdist, wheel


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_content(sdist: Path, wheel: Path) -> None:
    """Checks that the wheel has `src` and the runner only, and that the sdist has all files for development."""
    wanted = {
        path.relative_to(top).as_posix()
        for top, folder in ((SOURCE, SOURCE), (ROOT, RUNNER))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {name for name in contents(wheel) if ".dist-info/" not in name}
    if wanted != found or "inorder/py.typed" not in found or not any(name.endswith(".sql") for name in found):
        raise DistError(f"the wheel lacks {sorted(wanted - found)}, and has also {sorted(found - wanted)}")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = sorted(set(IN_SDIST) - names)
    if missing:
        raise DistError(f"the sdist lacks {missing}")


def installed(wheel: Path, venv: Path, base: str = sys.executable, extras: str = "") -> Path:
    """Returns the interpreter of a fresh environment with the wheel and its dependencies."""
    run(base, "-m", "venv", venv, cwd=venv.parent)
    python = venv / "bin/python"
    wanted = f"{wheel}[{extras}]" if extras else wheel
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted, cwd=venv.parent)
    where = run(python, "-c", "import inorder; print(inorder.__file__)", cwd=venv.parent)
    if not Path(where.strip()).is_relative_to(venv):
        raise DistError(f"inorder comes from {where.strip()}, not from the wheel")
    return python


def try_every_python(sdist: Path, wheel: Path, work: Path) -> None:
    """Tries the wheel with all extras on each Python that is installed, and the metadata with twine."""
    for version in VERSIONS:
        if (base := interpreter(version)) is None:
            print(f"Python {version}: not installed here")
            continue
        folder = work / version
        folder.mkdir()
        python = installed(wheel, folder / "venv", base, EXTRAS)
        run(python, "-m", "pip", "check", cwd=folder)
        run(python, "-c", "import inorder.spark, inorder.arrow, inorder.integrations.opentelemetry", cwd=folder)
        try_command(python, wheel)
        run(python.parent / "inorder", "--help", cwd=folder)
        try_readme(python, folder)
        try_server(python, folder)
        print(f"Python {version}: the wheel works", flush=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "twine", cwd=work)
    run(python, "-m", "twine", "check", "--strict", sdist, wheel, cwd=work)


def try_server(python: Path, work: Path) -> None:
    """Checks that a server answers, and ends with status 0 when it is asked to."""
    run(python.parent / "inorder", "create", "served.db", cwd=work)
    serve = (python.parent / "inorder", "serve", "served.db", "--port", "0")
    with subprocess.Popen(serve, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout
        try:
            address = next((found[0] for line in server.stdout if (found := re.search(r"https?://[^/]+", line))), None)
            if address is None:
                raise DistError("inorder serve has printed no address")
            with urllib.request.urlopen(f"{address}/health", timeout=SERVER_SECONDS) as answer:
                if answer.status != HTTPStatus.OK:
                    raise DistError(f"/health of inorder serve: {answer.status}")
        finally:
            server.terminate()
            server.communicate(timeout=SERVER_SECONDS)
    if server.returncode:
        raise DistError(f"inorder serve ended with status {server.returncode}")


def try_command(python: Path, wheel: Path) -> None:
    said = run(python.parent / "inorder", "--version", cwd=python.parent)
    version = wheel.name.split("-")[1]
    if said.strip() != f"inorder {version}":
        raise DistError(f"inorder --version says {said.strip()!r}, and the wheel {version}")


def try_readme(python: Path, work: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    if example is None:
        raise DistError("README.md has no example")
    (work / "first.py").write_text(example[1], encoding="utf-8")
    run(python, "first.py", cwd=work)


def try_old_names(python: Path, work: Path) -> None:
    """Checks that the runner's names of 0.1.0 work, until 0.3, and that the demonstrations are not in the wheel."""
    run(python, "-m", "inorder.testing", SCENARIO, "--store", "memory", cwd=work)
    run(python, "-m", "inorder", "scenarios", SCENARIO, "--kind", "sqlite", cwd=work)
    run(python, "-c", "from inorder.testing import read_scenarios, run_scenario, Scenario, Failure", cwd=work)
    run(python, "-m", "inorder", "demo", "order", cwd=work, refused=True)


def try_library(python: Path, out: Path, work: Path) -> None:
    """Builds the wheel of the folder mqi/, and checks that inorder uses its library, where there is no compiler."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", out, ROOT / "mqi", cwd=ROOT)
    [wheel] = out.glob("inorder_mqi-*-py3-none-*.whl")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(*pip, wheel, cwd=work)
    without = f"PATH={work}", "CC=", f"XDG_CACHE_HOME={work / 'cache'}"
    folder = Path(run("/usr/bin/env", *without, python, "-m", "inorder", "mqi", "build", cwd=work).strip())
    with zipfile.ZipFile(wheel) as archive:
        same = archive.read("inorder_mqi/libmqm_r.so") == (folder / "libmqm_r.so").read_bytes()
    if not same:
        raise DistError(f"the library in {folder} is not that of {wheel.name}")


def try_types(python: Path, work: Path) -> None:
    """Checks a user's program strictly against the types of the installed package, which must show its mistakes."""
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", python)
    (work / "user.py").write_text(PROGRAM, encoding="utf-8")
    run(*mypy, "user.py", cwd=work)
    (work / "wrong.py").write_text(PROGRAM + "".join(f"    {line}\n" for line in WRONG), encoding="utf-8")
    said = run(*mypy, "wrong.py", cwd=work, refused=True)
    if said.count("error:") != len(WRONG):
        raise DistError(f"mypy finds other mistakes than those {len(WRONG)}:\n{said}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except DistError as wrong:
        sys.exit(f"dist: {wrong}")
