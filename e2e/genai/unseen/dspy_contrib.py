"""DSPy, instrumented by OpenTelemetry."""

# requires: dspy==3.4.1
# requires: opentelemetry-instrumentation-genai-dspy==1.3b0

from opentelemetry.instrumentation.genai.dspy import DSPyInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
DSPyInstrumentor().instrument()
unseen_calls.dspy_chat()
