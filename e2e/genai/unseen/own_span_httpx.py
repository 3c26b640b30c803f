"""A program's own span for a request, which says nothing of a failure, and httpx below it, instrumented by OpenTelemetry."""

# requires: httpx==0.28.1
# requires: opentelemetry-instrumentation-httpx==0.66b2

import httpx
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

import telemetry
import unseen_calls
from telemetry import OPENAI_URL

telemetry.set_up()
HTTPXClientInstrumentor().instrument()
tracer = trace.get_tracer("program")


def ask(model, attempts=1):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    with tracer.start_as_current_span(f"chat {model}", kind=trace.SpanKind.CLIENT, attributes=attributes) as span:
        for _ in range(attempts):
            answer = httpx.post(OPENAI_URL + "/chat/completions", json={"model": model, "messages": unseen_calls.MESSAGES})
            if answer.status_code == 200:
                usage = answer.json()["usage"]
                span.set_attribute("gen_ai.usage.input_tokens", usage["prompt_tokens"])
                span.set_attribute("gen_ai.usage.output_tokens", usage["completion_tokens"])
                return


unseen_calls.run(ask, retrying=lambda model: ask(model, 3))
