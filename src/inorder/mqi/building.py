"""Makes the library that programs load in place of IBM's, with the C compiler of this machine, once for each Python.

Rules: M-2, M-4, M-5 of *mqi*.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from .functions import FUNCTIONS

LIBRARIES: Final = ("libmqm_r.so", "libmqic_r.so", "libmqm.so", "libmqic.so")
PYTHON_FILE: Final = "python"
READY_MADE: Final = "inorder_mqi"  # the package in the folder mqi/ of the repository
SIGN: Final = b"inorder.mqi.library"  # in a library of ours, and in no other
LOADER_PATH: Final = "LD_LIBRARY_PATH"


class NotBuilt(OSError):
    """The library cannot be made here, or must not be put there; the text has the reason and the remedy."""


def compiler() -> str | None:
    """The C compiler: $CC, cc, gcc or clang; None if there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)


def source() -> dict[str, str]:
    """The files of the library in C, by name."""
    lines = (
        f"FUNCTION({place}, {each.name}, ({each.prototype()}), ({', '.join(name for _, name in each.parameters)}))\n"
        for place, each in enumerate(FUNCTIONS)
    )
    stub = (files(__package__) / "stub.c").read_text(encoding="utf-8")
    return {"stub.c": stub, "functions.inc": "".join(lines)}


def compile_into(folder: Path) -> None:
    """Compiles the libraries into a folder. Raises: NotBuilt, if there is no compiler or it fails."""
    found = compiler()
    if found is None:
        raise NotBuilt("no C compiler was found: install one, such as apt install gcc libc6-dev, or set CC")
    with tempfile.TemporaryDirectory(prefix="inorder-") as work:
        for name, text in source().items():
            (Path(work) / name).write_text(text, encoding="utf-8")
        for name in LIBRARIES:
            flags = ["-O1", "-fPIC", "-shared", "-Wall", "-pthread", f"-Wl,-soname,{name}", "-Wl,-z,nodelete"]
            command = [found, *flags, "-o", str(folder / name), "stub.c", "-ldl"]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotBuilt(f"{found} failed: {done.stderr.strip()}")


def build() -> Path:
    """The folder of the library for this Python, which it makes if it does not exist.

    It is below $XDG_CACHE_HOME, by default ~/.cache. Raises: NotBuilt.
    """
    if not sys.platform.startswith("linux"):
        raise NotBuilt(f"the library is for Linux, not {sys.platform}; Python programs use the substitute modules")
    named = python_file()
    key = hashlib.sha256("".join([*source().values(), named, *map(str, _ready_made())]).encode()).hexdigest()[:16]
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache_home / "inorder" / "mqi" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as made:
        work = Path(made) / key
        work.mkdir()
        if ready := _ready_made():
            for path in ready:
                shutil.copy(path, work)
        else:
            compile_into(work)
        (work / PYTHON_FILE).write_text(named, encoding="utf-8")
        try:
            work.rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    return folder


def is_available() -> bool:
    """Whether `build` can succeed: on Linux, with a compiler or the ready-made library."""
    return sys.platform.startswith("linux") and (compiler() is not None or bool(_ready_made()))


@cache
def _ready_made() -> tuple[Path, ...]:
    spec = importlib.util.find_spec(READY_MADE)
    folder = None if spec is None or spec.origin is None else Path(spec.origin).parent
    return () if folder is None else tuple(folder / name for name in LIBRARIES)


def install(folder: Path) -> list[Path]:
    """Puts the library into a folder, such as one that a program's rpath names, and returns the paths.

    Raises: NotBuilt, if the folder has a library of another origin under these names, such as IBM's.
    """
    for name in LIBRARIES:
        if (folder / name).exists() and SIGN not in (folder / name).read_bytes():
            raise NotBuilt(f"{folder / name} is not a library of inorder and stays: name another folder")
    made = build()
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PYTHON_FILE, *LIBRARIES):
        shutil.copy(made / name, folder / name)
    return [folder / name for name in (*LIBRARIES, PYTHON_FILE)]


def environment(folder: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a program finds the library of a folder: those of the loader and of Node's package."""
    before = [each for each in given.get(LOADER_PATH, "").split(":") if each and each != str(folder)]
    return {LOADER_PATH: ":".join([str(folder), *before]), "MQIJS_PREFER_INSTALLED_LIBRARY": "1"}


def python_file() -> str:
    """The text of the file beside the library: libpython, the interpreter, and a statement that makes inorder
    importable.
    """
    home = str(Path(__file__).parents[2])
    is_installed = home in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    importable = "" if is_installed else f"import sys; sys.path.insert(0, {home!r})"
    return f"{libpython() or ''}\n{sys.executable}\n{importable}\n"


def libpython() -> Path | None:
    """The shared library of this Python, which programs in other languages load; None if there is none."""
    version = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so"
    names = [sysconfig.get_config_var("INSTSONAME") or "", f"{version}.1.0", version]
    library = Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib")
    folders = [library, library / (sysconfig.get_config_var("MULTIARCH") or ""), Path(sys.base_prefix) / "lib"]
    paths = (folder / name for folder in folders for name in names if ".so" in name)
    return next((path for path in paths if path.is_file()), None)
