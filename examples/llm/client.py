"""One program that talks to a chat model, and one instrumentation that watches.

main.py runs it once for every instrumentation. The program itself knows
nothing of OpenTelemetry but `set_up`, which is what a user would add.
"""

import argparse
import json
import random
import sys
import uuid

import openai
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from chat_server import BROKEN_MODEL, SLOW_MODEL

MODELS = ("tiny-1", "tiny-2")
TIMEOUT_SECONDS = 0.5
SERVICES = {name: "chat-" + name for name in ("openllmetry", "openinference", "both")}


# Whether each export went well. The SDK only logs one that did not.
exported = []


class SpanExporter(OTLPSpanExporter):
    def export(self, *args, **kwargs):
        result = super().export(*args, **kwargs)
        exported.append(result is SpanExportResult.SUCCESS)
        return result


class MetricExporter(OTLPMetricExporter):
    def export(self, *args, **kwargs):
        result = super().export(*args, **kwargs)
        exported.append(result is MetricExportResult.SUCCESS)
        return result


class FailedSpans(SpanProcessor):
    """Keeps the ids of the spans that failed, for the report of this example."""

    def __init__(self):
        self.ids = []

    def on_end(self, span):
        if not span.status.is_ok:
            self.ids.append({
                "trace_id": trace.format_trace_id(span.context.trace_id),
                "span_id": trace.format_span_id(span.context.span_id),
            })


def set_up(instrumentation):
    """Starts OpenTelemetry and instruments the OpenAI client.

    Where telemetry goes is for the SDK's own variables to say, above all
    OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    resource = Resource.create({"service.name": SERVICES[instrumentation]})
    traces = TracerProvider(resource=resource)
    failed = FailedSpans()
    traces.add_span_processor(failed)
    traces.add_span_processor(BatchSpanProcessor(SpanExporter()))
    trace.set_tracer_provider(traces)
    measurements = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(MetricExporter())])
    metrics.set_meter_provider(measurements)

    if instrumentation in ("openllmetry", "both"):
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor as OpenLLMetry

        OpenLLMetry().instrument()
    if instrumentation in ("openinference", "both"):
        from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference

        OpenInference().instrument()
    return traces, measurements, failed


class Chat:
    """Asks a model, and keeps what it was told."""

    def __init__(self, base_url, seed):
        # No retries: each request is one attempt, so counts are exact.
        self._client = openai.OpenAI(base_url=base_url, api_key="not-needed", max_retries=0)
        self._random = random.Random(seed)
        self.tokens = {}
        self.requests = 0
        self.answers = []
        self.errors = []

    def _ask(self, model, **options):
        """Sends a request whose length is drawn from the seed."""
        self.requests += 1
        request_id = uuid.UUID(int=self._random.getrandbits(128)).hex
        question = " ".join(["why"] * self._random.randint(5, 40))
        return self._client.chat.completions.create(
            model=model,
            messages=[
                {"role": "system", "content": "answer in one line"},
                {"role": "user", "content": question},
            ],
            max_tokens=self._random.randint(8, 24),
            user=request_id,
            **options,
        )

    def _count(self, model, usage):
        counted = self.tokens.setdefault(model, {"input": 0, "output": 0})
        counted["input"] += usage.prompt_tokens
        counted["output"] += usage.completion_tokens

    def complete(self, model):
        answer = self._ask(model)
        self._count(model, answer.usage)
        self.answers.append(answer.id)

    def stream(self, model):
        """The last chunk has the usage, because it was asked for."""
        usage = None
        for chunk in self._ask(model, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
        self._count(model, usage)
        self.answers.append(chunk.id)

    def stream_without_usage(self, model):
        """What many programs do: nobody learns how many tokens it was."""
        for chunk in self._ask(model, stream=True):
            pass
        self.answers.append(chunk.id)

    def fail(self, model):
        try:
            self._ask(model, timeout=TIMEOUT_SECONDS)
        except openai.OpenAIError as error:
            self.errors.append({"type": type(error).__name__, "message": str(error)})
        else:
            sys.exit(f"the request to {model} did not fail")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instrumentation", required=True, choices=SERVICES)
    parser.add_argument("--base-url", required=True, help="where the model is served")
    parser.add_argument("--steps", type=int, required=True, help="pairs of a plain and a streamed request")
    parser.add_argument("--seed", type=int, required=True, help="decides how long the requests are")
    parser.add_argument("--report", required=True, help="file for what was done")
    options = parser.parse_args()

    traces, measurements, failed = set_up(options.instrumentation)
    chat = Chat(options.base_url, f"{options.seed}/{options.instrumentation}")
    for step in range(options.steps):
        model = MODELS[step % len(MODELS)]
        chat.complete(model)
        chat.stream(model)
    chat.stream_without_usage(MODELS[0])
    chat.fail(BROKEN_MODEL)
    chat.fail(SLOW_MODEL)

    # Sends what is still in memory.
    traces.shutdown()
    measurements.shutdown()
    if not all(exported):
        sys.exit("not all telemetry was sent")
    report = {
        "requests": chat.requests,
        "tokens": chat.tokens,
        "answers": chat.answers,
        "errors": chat.errors,
        "failed_spans": failed.ids,
    }
    with open(options.report, "w", encoding="utf-8") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main()
