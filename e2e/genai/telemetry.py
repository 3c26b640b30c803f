"""What the programs in clients/ share: where the model is, and how telemetry is sent."""

import os

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

MODEL_URL = os.environ["MODEL_URL"]
OPENAI_URL = MODEL_URL + "/v1"
MODEL, BROKEN_MODEL = "tiny-1", "tiny-broken"
QUESTION = "why is the sky blue and not green at noon"
TOKENS = 12


def set_up():
    """Sends spans and metrics over OTLP/HTTP, and returns the provider of tracers."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider(metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())]))
    return provider


def fails(ask):
    """Asks the broken model, which has to fail."""
    try:
        ask()
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")
