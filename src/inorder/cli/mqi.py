"""`inorder mqi`: runs programs written for IBM MQ, and gives them the library and headers."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ..mqi import building
from ..stores.open import Location
from .lasting import ends_by_signal, run_all
from .output import Output
from .places import PlaceType
from .running import STORE_HELP, STORE_VARIABLE, Command, CommandGroup, Run, takes_store, tells_json
from .wording import count

takes_program_store = click.option(
    "--store", "-s", type=PlaceType(), metavar="PATH|URL", envvar=STORE_VARIABLE, show_envvar=True,
    help=f"{STORE_HELP} Without it, mqi.toml names the store of each queue manager.",
)  # fmt: skip
FOLDER = click.argument("folder", type=click.Path(path_type=Path, file_okay=False))


@click.group("mqi", cls=CommandGroup, epilog="Example: inorder mqi run --store orders.db app.py")
def mqi() -> None:
    """Run programs written for IBM MQ, unchanged: Python, Node.js, C and others that call the MQI.

    Such programs load IBM's library libmqm_r.so or libmqic_r.so. inorder has a library with these names, which stores
    messages in a store. It is compiled once, with the C compiler of this machine. 'inorder create orders.db --for mq'
    creates a store with the defaults of MQ.
    """


class _ProgramCommand(Command):
    """Leaves the options after PROGRAM to the program."""

    allow_interspersed_args = False


@mqi.command("run", cls=_ProgramCommand, example="inorder mqi run --store orders.db app.py --count 5")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@takes_program_store
@tells_json
def run(program: str, arguments: tuple[str, ...], store: Location | None, as_json: bool) -> int:
    """Run PROGRAM with the library. A name that ends with .py is a Python program.

    Others are commands, as in: inorder mqi run -- node app.js. Options for inorder stand before PROGRAM, all others go
    to PROGRAM. Without a C compiler, Python programs run with substitutes for the C modules of ibmmq and pymqi. The
    exit status is the status of PROGRAM.
    """
    del as_json  # the output is the program's
    variables = _of_store(store)
    is_python = program.endswith(".py")
    if not is_python or building.is_available():
        variables |= building.environment(building.build())
        begin = [sys.executable] if is_python else []
    else:
        begin = [sys.executable, "-m", "inorder.mqi.substitutes"]
    with _interrupts_left_to_program():
        ended = subprocess.run([*begin, program, *arguments], env=os.environ | variables, check=False)
    return ended.returncode if ended.returncode >= 0 else 128 - ended.returncode


def _of_store(store: Location | None) -> dict[str, str]:
    if store is None:
        return {}
    return {STORE_VARIABLE: str(store if store.path is None else store.path.absolute())}


@contextmanager
def _interrupts_left_to_program() -> Iterator[None]:
    """Leaves Ctrl-C to the program, because a terminal sends it to both processes."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@mqi.command("env", example="inorder mqi env --store orders.db")
@takes_program_store
@tells_json
def env(store: Location | None, as_json: bool) -> None:
    """Print the variables with which programs find the library, for a shell: eval "$(inorder mqi env)"."""
    variables = building.environment(building.build()) | _of_store(store)
    output = Output(as_json=as_json)
    if as_json:
        output.line(variables)
    for name, value in variables.items():
        output.say(f"export {name}={shlex.quote(value)}")


@mqi.command("build", example="inorder mqi build")
@tells_json
def build(as_json: bool) -> None:
    """Compile the library, if it does not exist, and print its folder. The commands run and env do this themselves.

    Programs in other languages than Python need the shared library of this Python, too; a note says if it is missing.
    """
    folder, python = building.build(), building.libpython()
    output = Output(as_json=as_json)
    if python is None:
        output.note(NO_LIBPYTHON)
    record = {"folder": str(folder), "libraries": [*building.LIBRARIES], "libpython": python and str(python)}
    output.tell(record, str(folder))


NO_LIBPYTHON = (
    "this Python has no shared library libpython, which programs in C and Node.js need: install one, such as "
    "apt install libpython3-dev. Python programs do not need it."
)


@mqi.command("install", example="inorder mqi install ./lib")
@FOLDER
@tells_json
def install(folder: Path, as_json: bool) -> None:
    """Put the library into FOLDER, for programs that look for it in one place, such as /opt/mqm/lib64.

    The library finds the store as with run: by mqi.toml or INORDER_STORE. A folder that has IBM's library is refused.
    """
    paths = building.install(folder)
    record = {"folder": str(folder), "files": [path.name for path in paths]}
    Output(as_json=as_json).tell(record, f"installed in {folder}: {', '.join(path.name for path in paths)}")


@mqi.command("headers", example="inorder mqi headers ./inc")
@FOLDER
@tells_json
def write_headers(folder: Path, as_json: bool) -> None:
    """Write the headers cmqc.h, cmqxc.h, cmqcfc.h and others into FOLDER, for C programs.

    To build pymqi, put them into the folder inc, and the library into lib64: 'inorder mqi headers mq/inc', 'inorder mqi
    install mq/lib64', and then 'MQ_FILE_PATH=$PWD/mq pip install --no-build-isolation pymqi'.
    """
    from ..mqi import c_headers  # noqa: PLC0415 - its tables are for this command alone

    paths = c_headers.write(folder)
    record = {"folder": str(folder), "files": [path.name for path in paths]}
    Output(as_json=as_json).tell(record, f"wrote to {folder}: {', '.join(path.name for path in paths)}")


@mqi.command("cflags", example="inorder mqi cflags")
@tells_json
def cflags(as_json: bool) -> None:
    """Print the options with which a C compiler finds headers and library: cc app.c $(inorder mqi cflags)."""
    from ..mqi import c_headers  # noqa: PLC0415 - as above

    folder = building.build()
    include = folder / "inc"
    c_headers.write(include)
    flags = [f"-I{include}", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lmqm_r"]
    Output(as_json=as_json).tell({"flags": flags}, shlex.join(flags))


@mqi.command("serve-commands", cls=Command, example="inorder mqi serve-commands --store orders.db")
@click.option("--until-empty", is_flag=True, help="End when no request is left.")
@takes_store
def answer_commands(run: Run, until_empty: bool) -> None:
    """Answer the requests in PCF on SYSTEM.ADMIN.COMMAND.QUEUE, until Ctrl-C.

    Programs that 'inorder mqi run' starts answer their own requests. This command answers those of other programs and
    of programs that died. If the store has users, a request may do what the user in its context may do.
    """
    from ..mqi.pcf.serving import serve_commands  # noqa: PLC0415 - it loads PCF, and with it MQSC

    answered = 0
    with run.opened() as qm, ends_by_signal() as ends:

        def serve() -> None:
            nonlocal answered
            for _ in serve_commands(qm, ends=ends.is_set, until_empty=until_empty):
                answered += 1

        failed = run_all([("command server", serve)])
    if failed is not None:
        raise failed
    run.output.tell({"requests": answered}, f"answered {count(answered, 'request')}")
