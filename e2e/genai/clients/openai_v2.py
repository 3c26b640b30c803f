"""The openai package, instrumented by the OpenTelemetry project."""

# requires: openai==2.54.0
# requires: opentelemetry-instrumentation-openai-v2==2.4b0
# requires: opentelemetry-util-genai==0.4b0

from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

import openai_calls
import telemetry

telemetry.set_up()
OpenAIInstrumentor().instrument()
openai_calls.run(openai_calls.client())
