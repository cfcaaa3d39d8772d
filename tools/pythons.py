"""Imports every module of the package on every installed Python: the quickest check that it runs there.

``python -m tools.pythons`` makes a small environment for each version in build/ (without Spark) and imports all
modules in it; modules that need an extra that is not installed there are counted, not imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
EXTRAS = "otel,prometheus,postgresql,server,work"
OTHERS = "matplotlib,pyarrow,pyspark,pytest"  # libraries that these environments lack

IMPORT_ALL = """
import importlib, sys, traceback, warnings
warnings.simplefilter("error")
allowed, lacking, failed = set(sys.argv[1].split(",")), 0, 0
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in allowed:
            lacking += 1
        else:
            failed += 1
            print("import", name, file=sys.stderr)
            traceback.print_exc(limit=-1)
imported = len(sys.argv) - 2 - lacking - failed
print(f"Python {sys.version.split()[0]}: {imported} modules imported, {lacking} need other libraries, {failed} failed")
sys.exit(failed > 0)
"""


def interpreter(version: str) -> str | None:
    """Returns the path of a Python of this version, from the PATH or pyenv, or None."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [shutil.which(name), *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/{name}")))]
    return next((place for place in places if place and _runs(place)), None)


def _runs(place: str) -> bool:  # a shim of pyenv exists, and fails, for a version that was not chosen
    return subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0


def modules() -> list[str]:
    """The names of all modules that a program could import."""
    files = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py"))]
    files += [path.relative_to(ROOT) for path in sorted(ROOT.glob("inorder_scenarios/*.py"))]
    named = (path.with_suffix("") for path in files if path.name != "__main__.py")
    return [".".join(path.parts).removesuffix(".__init__") for path in named]


def import_all(version: str) -> str:
    """Imports all on this version; returns the output. Raises: RuntimeError; CalledProcessError, from pip."""
    if version == ".".join(map(str, sys.version_info[:2])):
        python, allowed = sys.executable, "-"
    elif found := interpreter(version):
        python, allowed = _environment(version, found), OTHERS
    else:
        return f"Python {version}: not installed here"
    done = subprocess.run(
        [python, "-c", IMPORT_ALL, allowed, *modules()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{done.stdout}{done.stderr}")
    return done.stdout.strip()


def _environment(version: str, base: str) -> str:
    """Returns the interpreter of an environment in build/, made if missing or older than pyproject.toml."""
    folder = ROOT / f"build/python{version}"
    python, ready = folder / "bin/python", folder / ".ready"
    if not ready.exists() or ready.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([str(python), *install, "--editable", f".[{EXTRAS}]"], cwd=ROOT, check=True, capture_output=True)
        ready.touch()
    return str(python)


def main() -> int:
    """Imports on all of them, two at a time; 1 if any failed."""
    failed = False
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(import_all, version) for version in VERSIONS]:
            try:
                print(future.result(), flush=True)
            except (RuntimeError, subprocess.CalledProcessError) as wrong:
                print(wrong, file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
