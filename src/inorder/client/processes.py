"""The part of a connection for process definitions, which name the program that serves a queue (R4.9)."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING

from ..errors import ObjectExists
from ..model.options import check_switch
from ..model.process_attributes import ProcessAttributes, ProcessKeywords, altered_process, define_process
from ..stores.seam.definitions import as_text, process_of
from ..stores.seam.protocol import Store
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROCESS = "process"


class ProcessCalls(ABC):
    """What `QueueManager` has of it."""

    _session: Session
    _store: Store

    def create_process(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[ProcessKeywords]) -> None:
        """Defines what program serves a queue. Attributes: see `inorder.model.process_attributes.ProcessAttributes`.

        A queue names it with its attribute `process`; its trigger messages say then what is defined here.

        Args:
            exist_ok: one of this name that is the same is left as it is.

        Raises: ArgumentError, a bad name or attribute; ObjectExists 2100.
        """
        check_switch("exist_ok", exist_ok)
        wanted = define_process(name, **attributes)
        with self._session:
            try:
                self._store.define_object(PROCESS, name, as_text(wanted))
            except ObjectExists:
                if not (exist_ok and process_of(self._store.object(PROCESS, name).attributes) == wanted):
                    raise

    def alter_process(self, name: str, **changes: Unpack[ProcessKeywords]) -> None:
        """Changes attributes of a process definition. Raises: UnknownObject 2085; ArgumentError."""
        with self._session:
            before = self._store.object(PROCESS, name).attributes
            self._store.alter_object(PROCESS, name, before, as_text(altered_process(process_of(before), **changes)))

    def delete_process(self, name: str) -> None:
        """Deletes a process definition; queues that name it trigger nothing any more. Raises: UnknownObject 2085."""
        with self._session:
            self._store.delete_object(PROCESS, name)

    def process(self, name: str) -> ProcessAttributes:
        """A process definition. Raises: UnknownObject 2085."""
        with self._session:
            return process_of(self._store.object(PROCESS, name).attributes)

    def processes(self) -> list[ProcessAttributes]:
        """All process definitions, by name."""
        with self._session:
            return [process_of(one.attributes) for one in self._store.objects(PROCESS)]
