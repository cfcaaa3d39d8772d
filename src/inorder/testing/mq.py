"""For tests of programs written for IBM MQ: a queue manager in a temporary file, which such programs can find.

The fixture `mq` of `inorder.testing.fixtures` is the same.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..client.manager import QueueManager, connect
from ..mqi import building, substitutes
from ..mqi.connections import abandon_all
from ..mqi.defaults import define_defaults, define_queue
from ..mqi.settings import FOLDER_VARIABLE, SERVER_VARIABLE, STORE_VARIABLE
from .stores import remove_folder

OTHERS: Final = (FOLDER_VARIABLE, SERVER_VARIABLE)  # of the environment, which would name other stores


@dataclass(frozen=True, slots=True)
class MqTest:
    """A queue manager for programs written for IBM MQ.

    Attributes:
        name: the name of the queue manager.
        store: the path of its store.
        qm: a separate connection, to put and inspect messages.
        environment: variables by which programs in other processes find the store; until the end in `os.environ`.
    """

    name: str
    store: Path
    qm: QueueManager
    environment: Mapping[str, str]


@contextmanager
def temporary_mq(*queues: str, name: str = "QM1", in_python: bool = False) -> Iterator[MqTest]:
    """Makes a queue manager with MQ's defaults. `import ibmmq` and `import pymqi` in the block reach it, and so do
    programs that the block starts.

    This process loads the library, which stays loaded. At the end, connections that are still open in this process are
    ended and backed out, and the environment is restored.

    Args:
        queues: the names of local queues that it has.
        name: the name of the queue manager.
        in_python: uses the substitute modules in this process, also if the library can be built.
    """
    with ExitStack() as until_the_end:
        folder = tempfile.mkdtemp(prefix="inorder-")
        until_the_end.callback(remove_folder, folder, os.getpid())
        store = Path(folder) / "mq.db"
        qm = until_the_end.enter_context(connect(store, name=name))
        define_defaults(qm)
        for queue in queues:
            define_queue(qm, queue)
        environment = {STORE_VARIABLE: str(store)}
        if building.is_available():
            library = building.build()
            environment |= building.environment(library)
        until_the_end.enter_context(_in_environment(environment))
        if in_python or not building.is_available():
            until_the_end.enter_context(substitutes.installed())
        else:
            for soname in building.LIBRARIES:
                ctypes.CDLL(str(library / soname))  # the loader finds it by its name from now on
        until_the_end.callback(abandon_all)
        yield MqTest(name, store, qm, environment)


@contextmanager
def _in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.pop(name, None) for name in (*variables, *OTHERS)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
