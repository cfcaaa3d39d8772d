"""The attributes of process definitions: the program that serves a queue, as trigger messages describe it (R4.9)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypedDict

from .attribute import COUNT_MAX, Table, checked, integers, names, table_of, texts

APPLICATION_ID_LENGTH_MAX: Final = 256
DATA_LENGTH_MAX: Final = 128
PROCESS: Final = frozenset({"process"})
UNIX: Final = 6

# fmt: off


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessAttributes:
    """The attributes of a process definition; ``define_process`` and ``altered_process`` make and check them."""

    name: str = field(metadata=names(
        1, "ProcessName", 2012, "The name of the process definition. It never changes.", changed_by="create",
        mqsc="PROCESS"))
    description: str = field(default="", metadata=texts(
        "ProcessDesc", 2011, "A description of the program.", mqsc="DESCR"))
    application_type: int = field(default=UNIX, metadata=integers(
        0, COUNT_MAX, "ApplType", 1, "The type of program; 6 is started by a shell.", mqsc="APPLTYPE"))
    application_id: str = field(default="", metadata=texts(
        "ApplId", 2001, "The command that starts the program.", APPLICATION_ID_LENGTH_MAX,
        mqsc="APPLICID"))
    environment_data: str = field(default="", metadata=texts(
        "EnvData", 2007, "Further data for the starter of the program.", DATA_LENGTH_MAX, mqsc="ENVRDATA"))
    user_data: str = field(default="", metadata=texts(
        "UserData", 2021, "Data for the program itself.", DATA_LENGTH_MAX, mqsc="USERDATA"))


# fmt: on


class ProcessKeywords(TypedDict, total=False):
    """The attributes of a process definition as keywords."""

    description: str
    application_type: int
    application_id: str
    environment_data: str
    user_data: str


NO_PROCESS: Final = ProcessAttributes(name="", application_type=0)
PROCESS_ATTRIBUTES: Final[Table] = table_of(ProcessAttributes, PROCESS)


SYSTEM_PROCESS: Final = ProcessAttributes(name="SYSTEM.DEFAULT.PROCESS")
"""A process definition that exists without being stored, as in MQ: a DEFINE in MQSC takes its defaults from it."""


def define_process(name: str, **given: object) -> ProcessAttributes:
    """Makes the attributes of a new process definition: those given, and defaults.

    Raises ArgumentError if an attribute is unknown (2067) or has a bad value.
    """
    return ProcessAttributes(**checked(PROCESS_ATTRIBUTES, "process", "create", {"name": name, **given}))


def altered_process(attributes: ProcessAttributes, /, **changes: object) -> ProcessAttributes:
    """Makes the attributes after a change. Raises as ``define_process``."""
    return replace(attributes, **checked(PROCESS_ATTRIBUTES, "process", "alter", changes))
