"""Spans and metrics in the terms of OpenTelemetry's conventions for messaging, with the real SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.baggage import get_all as get_all_baggage
from opentelemetry.baggage import set_baggage
from opentelemetry.context import attach, detach
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import SpanKind, StatusCode

from inorder import Message, QueueFull, QueueManager
from inorder.integrations.opentelemetry import OPERATIONS, SCHEMA_URL, context_of, instrument
from inorder.model.properties import LENGTH_MAX
from inorder.stores.seam.telemetry import EVENTS


class Watched:
    """An instrumented queue manager, and the spans and metrics that were exported."""

    def __init__(self, qm: QueueManager) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.observation = instrument(qm, tracer_provider=self.tracers, meter_provider=self.meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        data = self._reader.get_metrics_data()
        assert data is not None
        found = [one for each in data.resource_metrics for scope in each.scope_metrics for one in scope.metrics]
        [wanted] = [one for one in found if one.name == metric]
        return [(dict(point.attributes or {}), point) for point in wanted.data.data_points]

    def close(self) -> None:
        self.observation.cancel()
        self.tracers.shutdown()
        self.meters.shutdown()


@pytest.fixture
def watched(qm: QueueManager) -> Iterator[Watched]:
    made = Watched(qm)
    yield made
    made.close()


def test_a_put_is_a_span_with_the_attributes_of_the_semantic_conventions(qm: QueueManager, watched: Watched) -> None:
    qm.put_many("Q", [b"12345", b"678"])
    qm.put("Q", b"12345")
    span, of_one = watched.spans
    assert (span.name, span.kind) == ("put Q", SpanKind.PRODUCER)
    assert dict(span.attributes or {}) == {
        messaging.MESSAGING_SYSTEM: "inorder",
        messaging.MESSAGING_OPERATION_NAME: "put",
        messaging.MESSAGING_OPERATION_TYPE: messaging.MessagingOperationTypeValues.SEND.value,
        messaging.MESSAGING_DESTINATION_NAME: "Q",
        messaging.MESSAGING_BATCH_MESSAGE_COUNT: 2,
    }
    told = dict(of_one.attributes or {})
    assert told[messaging.MESSAGING_MESSAGE_BODY_SIZE] == 5
    assert messaging.MESSAGING_BATCH_MESSAGE_COUNT not in told
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time < span.end_time
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "inorder"
    assert span.instrumentation_scope.schema_url == SCHEMA_URL == Schemas.V1_44_0.value


def test_a_span_is_a_child_of_the_current_span_of_the_program(qm: QueueManager, watched: Watched) -> None:
    with watched.tracers.get_tracer("shop").start_as_current_span("order") as order:
        qm.put("Q", b"1")
    put, outer = watched.spans
    assert outer.name == "order"
    assert put.parent is not None
    assert put.parent.span_id == order.get_span_context().span_id


def test_gets_browses_and_ends_of_units_have_their_names_and_types(qm: QueueManager, watched: Watched) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"1")
    list(qm.browse("Q"))
    qm.get("Q")
    named = [(span.name, (span.attributes or {})[messaging.MESSAGING_OPERATION_TYPE]) for span in watched.spans]
    assert named == [
        ("put Q", "send"),
        ("commit", "settle"),
        ("browse Q", "receive"),
        ("browse Q", "receive"),
        ("get Q", "receive"),
    ]


def test_a_call_that_fails_is_a_span_with_an_error(qm: QueueManager, watched: Watched) -> None:
    qm.alter_queue("Q", max_depth=1)
    qm.put("Q", b"1")
    with pytest.raises(QueueFull):
        qm.put("Q", b"2")
    span = watched.spans[-1]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})[error_attributes.ERROR_TYPE] == "Q_FULL"


def test_durations_and_messages_are_measured(qm: QueueManager, watched: Watched) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.get_many("Q", 2)
    list(qm.browse("Q"))
    [(put, sent)] = watched.points(messaging_metrics.MESSAGING_CLIENT_SENT_MESSAGES)
    assert (put[messaging.MESSAGING_DESTINATION_NAME], sent.value) == ("Q", 3)
    [(got, consumed)] = watched.points(messaging_metrics.MESSAGING_CLIENT_CONSUMED_MESSAGES)
    assert (got[messaging.MESSAGING_OPERATION_NAME], consumed.value) == ("get", 2)
    durations = watched.points(messaging_metrics.MESSAGING_CLIENT_OPERATION_DURATION)
    told = {point[0][messaging.MESSAGING_OPERATION_NAME]: point[1].count for point in durations}
    assert told == {"put": 1, "get": 1, "browse": 2}


def test_only_messaging_operations_have_spans(qm: QueueManager, watched: Watched) -> None:
    qm.depth("Q")
    assert watched.spans == []
    assert {name.removeprefix("inorder.") for name in OPERATIONS} <= EVENTS.keys()
    known = {one.value for one in messaging.MessagingOperationTypeValues}
    assert {operation.type for operation in OPERATIONS.values()} <= known


# ---- the context travels with messages


def test_a_get_is_linked_to_the_spans_in_which_its_messages_were_put(qm: QueueManager, watched: Watched) -> None:
    tracer = watched.tracers.get_tracer("test")
    contexts = []
    for name in ("one", "two"):
        with tracer.start_as_current_span(name) as span:
            qm.put_many("Q", [b"1", Message(b"2", properties={"colour": "red"})])
        contexts.append(span.get_span_context())
    qm.put("Q", b"from nowhere")
    got = qm.get_many("Q", 10)
    assert [message.properties.get("colour") for message in got] == [None, "red", None, "red", None]
    assert "traceparent" not in got[-1].properties
    [get] = [span for span in watched.spans if span.name == "get Q"]
    assert [link.context.span_id for link in get.links] == [context.span_id for context in contexts]
    assert [link.context.trace_id for link in get.links] == [context.trace_id for context in contexts]
    [put, *_] = watched.spans
    assert not put.links


def test_a_put_under_a_confirm_id_carries_the_trace_context_too(qm: QueueManager, watched: Watched) -> None:
    with watched.tracers.get_tracer("test").start_as_current_span("one") as span:
        qm.put("Q", b"1", confirm_id=7)
    message = next(one.message for one in qm.inspect.look("Q"))
    assert f"{span.get_span_context().span_id:016x}" in str(message.properties["traceparent"])


def test_baggage_is_carried_and_properties_set_by_the_program_are_kept(qm: QueueManager, watched: Watched) -> None:
    token = attach(set_baggage("customer", "7"))
    try:
        qm.put("Q", b"1")
        qm.put("Q", b"2", properties={"baggage": "customer=8"})
    finally:
        detach(token)
    carried = [get_all_baggage(context_of(message)) for message in qm.browse("Q")]
    assert carried == [{"customer": "7"}, {"customer": "8"}]
    assert qm.get("Q").properties == {"baggage": "customer=7"}


def test_a_trace_context_that_does_not_fit_is_left_out(
    qm: QueueManager, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    full = {"full": "x" * (LENGTH_MAX - 100)}
    with watched.tracers.get_tracer("test").start_as_current_span("one"):
        token = attach(set_baggage("long", "x" * 1000))
        qm.put("Q", b"1", properties=full)
        detach(token)
    assert qm.get("Q").properties == full
    assert "without its trace context" in caplog.text


def test_no_trace_context_is_carried_after_the_instrumentation_is_cancelled(qm: QueueManager, watched: Watched) -> None:
    with watched.tracers.get_tracer("test").start_as_current_span("one"):
        watched.observation.cancel()
        qm.put("Q", b"1")
        assert not qm.get("Q").properties
        again = instrument(qm, tracer_provider=watched.tracers, meter_provider=watched.meters)
        qm.put("Q", b"1")
        assert "traceparent" in qm.get("Q").properties
        again.cancel()
