"""A program with message consumers, for tests of MQCB and MQCTL."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from inorder import QueueManager
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.connections import MqiConnection, add
from inorder.mqi.layouts import layout

OK = (0, 0)
START, START_WAIT, STOP = mq.MQOP_START, mq.MQOP_START_WAIT, mq.MQOP_STOP
SUSPEND, RESUME = mq.MQOP_SUSPEND, mq.MQOP_RESUME
REGISTER, DEREGISTER = mq.MQOP_REGISTER, mq.MQOP_DEREGISTER
BOTH = mq.MQOO_INPUT_SHARED | mq.MQOO_BROWSE | mq.MQOO_OUTPUT
EVERY_CALL = mq.MQCBDO_REGISTER_CALL | mq.MQCBDO_START_CALL | mq.MQCBDO_STOP_CALL | mq.MQCBDO_DEREGISTER_CALL
WAIT_SECONDS = 60


class Call(NamedTuple):
    """A call of a consumer, with its structures as values."""

    context: Any
    data: bytes | None
    md: Any
    gmo: Any

    @property
    def brief(self) -> tuple[int, bytes | None]:
        return self.context.CallType, self.data


class ConsumingProgram:
    """A program with one connection; `calls` holds the calls of its consumers in order."""

    def __init__(self, manager: QueueManager, share: int = mq.MQCNO_HANDLE_SHARE_BLOCK) -> None:
        self.hconn = add(MqiConnection(manager, "", share=share, is_client=False))
        self.calls: SimpleQueue[Call] = SimpleQueue()

    def open(self, name: str = "Q", options: int = BOTH) -> int:
        hobj, *codes = verbs.mqopen(self.hconn, layout("OD").new(ObjectName=name.encode()), options)
        assert tuple(codes) == OK
        return hobj

    def put(self, hobj: int, *bodies: bytes) -> None:
        for body in bodies:
            assert verbs.mqput(self.hconn, hobj, None, None, body) == OK

    def register(
        self,
        hobj: int,
        options: int = mq.MQGMO_NO_SYNCPOINT,
        *,
        operation: int = REGISTER,
        then: Callable[[Call], object] = lambda _: None,
        wait: int = 0,
        md: dict[str, Any] | None = None,
        gmo: dict[str, Any] | None = None,
        **cbd: Any,
    ) -> tuple[int, int]:
        def called(_: int, md: Any, gmo: Any, data: Any, context: Any) -> None:
            values = [None if one is None else layout(name).read(one) for name, one in (("MD", md), ("GMO", gmo))]
            call = Call(layout("CBC").read(context), None if data is None else bytes(data), *values)
            then(call)
            self.calls.put(call)

        getting = layout("GMO").new(Options=options, WaitInterval=wait, **gmo or {})
        about = layout("CBD").new(**cbd)
        return verbs.mqcb(self.hconn, operation, about, hobj, layout("MD").new(**md or {}), getting, called)

    def control(self, operation: int, area: int = 0) -> tuple[int, int]:
        return verbs.mqctl(self.hconn, operation, layout("CTLO").new(ConnectionArea=area))

    def next(self) -> Call:
        return self.calls.get(timeout=WAIT_SECONDS)

    def bodies(self, count: int) -> list[bytes | None]:
        return [self.next().data for _ in range(count)]
