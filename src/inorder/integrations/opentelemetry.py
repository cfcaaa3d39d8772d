"""Events as OpenTelemetry spans and metrics; needs the extra ``inorder[otel]``.

The names follow the semantic conventions for messaging, version 1.44.0 (status: development). The span of a call is a
child of the span in which the program made it.

Each message carries the putter's context in properties with the names of the global propagator: `traceparent`,
`tracestate` and `baggage`, as W3C defines them. The span of a get or a browse has a link to each context in its
messages. This is the context in which the program called the put, because the put's own span is made after the call. A
property of such a name that the program has set itself is not changed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider

from .. import __version__
from ..client.manager import QueueManager
from ..errors import InorderError
from ..model.message import Message
from ..stores.seam.telemetry import Observation, StoreEvent

log = logging.getLogger("inorder.opentelemetry")

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"


class SpanConvention(NamedTuple):
    """An event in the words of the conventions."""

    name: str
    type: str
    kind: SpanKind


OPERATIONS: Final = {  # other events are not messaging operations and have no span
    "inorder.put": SpanConvention("put", "send", SpanKind.PRODUCER),
    "inorder.settle_staging": SpanConvention("settle_staging", "send", SpanKind.PRODUCER),
    "inorder.get": SpanConvention("get", "receive", SpanKind.CONSUMER),
    "inorder.browse_and_lock": SpanConvention("browse_and_lock", "receive", SpanKind.CONSUMER),
    "inorder.claim": SpanConvention("claim", "receive", SpanKind.CONSUMER),
    "inorder.settle": SpanConvention("settle", "settle", SpanKind.CLIENT),
    "inorder.settle_prepared": SpanConvention("settle_prepared", "settle", SpanKind.CLIENT),
    "inorder.one_message": SpanConvention("one_message", "settle", SpanKind.CLIENT),
    "inorder.undo": SpanConvention("undo", "settle", SpanKind.CLIENT),
    "inorder.settle_claims": SpanConvention("settle_claims", "settle", SpanKind.CLIENT),
    "inorder.return_ahead": SpanConvention("return_ahead", "settle", SpanKind.CLIENT),
    "inorder.finish_claims": SpanConvention("finish_claims", "settle", SpanKind.CLIENT),
    "inorder.release_claims": SpanConvention("release_claims", "settle", SpanKind.CLIENT),
}
NAMED_BY: Final = {"inorder.settle": "outcome", "inorder.settle_prepared": "outcome", "inorder.one_message": "act"}


def instrument(
    manager: QueueManager,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Observation:
    """Makes a span and measurements of each messaging operation on the store of a connection, until it is cancelled.

    Args:
        tracer_provider, meter_provider: by default the global ones.
    """
    tracer = trace.get_tracer("inorder", __version__, tracer_provider, SCHEMA_URL)
    meter = metrics.get_meter("inorder", __version__, meter_provider, SCHEMA_URL)
    carrying: list[Observation] = []
    services = manager._session.services
    before = services.carry

    def carry(messages: list[Message | bytes]) -> list[Message | bytes]:
        if carrying[0] not in services.telemetry.observations:
            return messages if before is None else before(messages)
        return with_context(messages)

    duration = meter.create_histogram("messaging.client.operation.duration", "s", "Duration of an operation")
    sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Messages put")
    consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Messages got or claimed")

    def observe(event: StoreEvent) -> None:
        operation = operation_of(event)
        if operation is None:
            return
        ended = time.time_ns()
        seconds, messages = event.measurements["seconds"], int(event.measurements.get("messages", 0))
        common = attributes_of(event, operation)
        about = {key: value for key, value in common.items() if key != "messaging.operation.type"}
        duration.record(seconds, about)
        if operation.type == "send":
            sent.add(messages, about)
        elif operation.type == "receive" and operation.name in ("get", "claim"):
            consumed.add(messages, about)
        queue = event.metadata.get("queue")
        name = f"{operation.name} {queue}" if queue else operation.name
        span = tracer.start_span(
            name,
            kind=operation.kind,
            attributes={**common, **sizes_of(event)},
            links=links_to(event.messages),
            start_time=ended - int(seconds * 1e9),
        )
        if event.metadata["completion"] == "failed":
            span.set_status(Status(StatusCode.ERROR, str(event.metadata["error"])))
        span.end(ended)

    carrying.append(manager.inspect.observe(observe))
    services.carry = carry
    return carrying[0]


def with_context(messages: list[Message | bytes]) -> list[Message | bytes]:
    """Adds the current context to the messages' properties; unchanged if there is none, or no room for it."""
    carried: dict[str, str] = {}
    propagate.inject(carried)
    return [_with(message, carried) for message in messages] if carried else messages


def _with(message: Message | bytes, carried: Mapping[str, str]) -> Message | bytes:
    own = message if isinstance(message, Message) else Message(message)
    try:
        return own.replace(properties={**carried, **own.properties})
    except InorderError as error:
        log.warning("a message is put without its trace context: %s", error)
        return message


def context_of(message: Message) -> Context:
    """The context in a message, with its baggage: the parent for spans of work that the message causes."""
    carried = {name: value for name, value in message.properties.items() if isinstance(value, str)}
    return propagate.extract(carried, Context())


def links_to(messages: Sequence[Message]) -> list[Link]:
    """A link to each context in the messages, once."""
    spans = (trace.get_current_span(context_of(message)) for message in messages if message.properties)
    found = {(one.trace_id, one.span_id): one for one in (span.get_span_context() for span in spans)}
    return [Link(context) for context in found.values() if context.is_valid]


def operation_of(event: StoreEvent) -> SpanConvention | None:
    """The operation of an event, named by its effect if one call has several; None if the event is not an operation."""
    operation = OPERATIONS.get(event.name)
    if operation is None:
        return None
    if event.name == "inorder.get" and event.metadata["browse"]:
        return operation._replace(name="browse")
    return operation._replace(name=str(event.metadata.get(NAMED_BY.get(event.name, ""), operation.name)))


def attributes_of(event: StoreEvent, operation: SpanConvention) -> dict[str, str]:
    """The attributes that spans and metrics share."""
    made = {
        "messaging.system": "inorder",
        "messaging.operation.name": operation.name,
        "messaging.operation.type": operation.type,
    }
    if event.metadata.get("queue"):
        made["messaging.destination.name"] = str(event.metadata["queue"])
    if event.metadata["completion"] == "failed":
        made["error.type"] = str(event.metadata["reason_name"])
    return made


def sizes_of(event: StoreEvent) -> dict[str, int]:
    """The size of the operation: the length of one message, or the number of several or none."""
    messages = event.measurements.get("messages")
    if messages is None:
        return {}
    if messages == 1 and "bytes" in event.measurements:
        return {"messaging.message.body.size": int(event.measurements["bytes"])}
    return {"messaging.batch.message_count": int(messages)}
