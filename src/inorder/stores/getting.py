"""Gets and browses as verbs: the one that takes, the one that only looks, and steps of a search that goes far."""

from __future__ import annotations

import math
from abc import ABC
from time import sleep

from .ahead import NOT_YET, PAUSE, Ahead
from .bulk import Shortcuts
from .catalog import get_allowed
from .connections import in_verb
from .process import OpenStore
from .reading import Reading
from .records import GetOutcome, GetRequest
from .settling import tidied
from .verb import Verb
from .waits import begin_wait, end_wait

Looked = tuple[GetOutcome, float | None]
"""What a look found, and when to look again though nothing has changed."""


class GettingVerbs(OpenStore, ABC):
    """The part of a store for gets and browses."""

    shortcuts: Shortcuts | None

    def _look_far(self, request: GetRequest, waits: bool) -> Looked:
        """With a selector: a search that goes far looks ahead first."""
        get = self._look_or_take if request.options.browse else self._take
        ahead = NOT_YET
        while True:
            found = get(request, waits, ahead)
            if not found[0].is_far:
                return found
            before, ahead = ahead.passed, ahead._replace(is_over=False)
            while not ahead.is_over:
                ahead = self._step_ahead(request, ahead)
                sleep(PAUSE)
            if ahead.passed == before:  # it comes no further: then the search does, however far it goes
                ahead = ahead._replace(asks=math.inf)

    @in_verb(writes=False)
    def _step_ahead(self, verb: Verb, request: GetRequest, ahead: Ahead) -> Ahead:
        handle = self.handle(request.handle)
        queue = verb.queue_of(handle)
        resolved = get_allowed(verb, handle, queue)
        return Reading(verb, handle, queue, request, resolved, verb.manager, ahead=ahead).look_ahead()

    def _look_or_take(self, request: GetRequest, waits: bool, ahead: Ahead = NOT_YET) -> Looked:
        if not waits and self._only_looks(request):
            outcome = self._browse(request, ahead)
            if outcome is not None:
                return outcome, None
        return self._take(request, waits, ahead)

    @in_verb(writes=False)
    def _browse(self, verb: Verb, request: GetRequest, ahead: Ahead) -> GetOutcome | None:
        """What a browse that changes nothing finds; None: something is to be tidied first."""
        handle = self.handle(request.handle)
        queue = verb.queue_of(handle)
        if queue.has_work(verb.now):
            return None
        resolved = get_allowed(verb, handle, queue)
        return Reading(verb, handle, queue, request, resolved, verb.manager, ahead=ahead).run()

    @in_verb(alone=False, together=True)
    def _take(self, verb: Verb, request: GetRequest, waits: bool, ahead: Ahead = NOT_YET) -> Looked:
        handle = self.handle(request.handle)
        queue = tidied(verb, handle)
        if handle.connection.waits:
            end_wait(verb, handle.connection)
        resolved = get_allowed(verb, handle, queue)
        if self.shortcuts is not None:
            taken = self.shortcuts.get(verb, handle, queue, request, resolved)
            if taken is not None:
                return taken, None
        reading = Reading(verb, handle, queue, request, resolved, verb.manager, waits=waits, ahead=ahead)
        outcome = reading.run()
        if outcome.messages or outcome.is_far or not waits:
            return outcome, None
        begin_wait(verb, handle, outcome, reading.in_its_way)
        return outcome, reading.look_again_at()

    def _only_looks(self, request: GetRequest) -> bool:
        """Whether the call is a browse that changes nothing: it then waits for no writer."""
        options, handle = request.options, self.handles.get(request.handle)
        if not options.browse or handle is None or handle.has_locked:
            return False
        marks = options.mark_handle or options.mark_co_op or options.unmark_handle or options.unmark_co_op
        connection = self.connections.get(handle.connection.id)  # another thread may be ending it
        return not (options.lock or marks or connection is None or connection.waits)
