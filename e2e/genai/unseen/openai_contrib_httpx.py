"""The openai package and httpx below it, instrumented by OpenTelemetry."""

# requires: openai==3.57.0
# requires: opentelemetry-instrumentation-genai-openai==1.3b0
# requires: opentelemetry-instrumentation-httpx==0.66b2

from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
OpenAIInstrumentor().instrument()
HTTPXClientInstrumentor().instrument()
unseen_calls.openai_chat()
