"""Traces and metrics in the way of TaskWeaver 0.0.12.

TaskWeaver's own module sets the exporters up itself: gRPC, one address for
both, a resource that has nothing but service.name. Spans are named after the
class and the method. Where a step fails without raising, only the status says
so: there is no exception event.
"""

import functools
import json
import logging
import re

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SERVICE = "taskweaver.otlp.tracer"
SCOPE = "taskweaver.module.tracing"

tracer = trace.get_tracer(SCOPE)
tokens_total = metrics.get_meter(SCOPE).create_counter(
    "prompt_size", unit="1", description="Tokens of prompts and of replies."
)


class Unsent(logging.Handler):
    """Collects what the exporters could not send; the SDK only logs it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []
        logging.getLogger("opentelemetry.exporter").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def start(endpoint: str, observer: SpanProcessor):
    """Sends to an address from now on. Returns what flushes and ends that.

    That in turn returns what could not be sent.
    """
    unsent = Unsent()
    resource = Resource(attributes={SERVICE_NAME: SERVICE})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    traces.add_span_processor(observer)
    trace.set_tracer_provider(traces)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=endpoint))
    meters = MeterProvider(resource=resource, metric_readers=[reader])
    metrics.set_meter_provider(meters)

    def stop() -> list[str]:
        traces.shutdown()
        meters.shutdown()
        return unsent.messages

    return stop


def traced(method):
    """Opens a span named Class.method around each call of a method."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        with tracer.start_as_current_span(f"{type(self).__name__}.{method.__name__}"):
            return method(self, *args, **kwargs)

    return call


def note(**attributes) -> None:
    """Puts attributes on the current span. A double underscore stands for a dot."""
    span = trace.get_current_span()
    for key, value in attributes.items():
        span.set_attribute(key.replace("__", "."), value)


def fail(message: str) -> None:
    """Marks the current span as failed."""
    trace.get_current_span().set_status(trace.StatusCode.ERROR, message)


def count_tokens(text: str) -> int:
    """Counts words and punctuation marks.

    TaskWeaver counts with tiktoken, whose vocabulary is a download. This is a
    stand-in: it counts something else, and exactly what it counts is sent.
    """
    return len(re.findall(r"\w+|[^\w\s]", text))


def count_prompt(messages: list[dict]) -> int:
    """Notes and counts a prompt as it goes to the model. Returns its tokens."""
    size = count_tokens(json.dumps(messages))
    note(prompt=json.dumps(messages, indent=2), prompt_size=size)
    tokens_total.add(size, {"direction": "input"})
    return size


def count_reply(text: str) -> int:
    """Notes and counts a reply of the model. Returns its tokens."""
    size = count_tokens(text)
    note(output_size=size)
    tokens_total.add(size, {"direction": "output"})
    return size
