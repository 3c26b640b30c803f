"""The anthropic package, instrumented by OpenTelemetry."""

# requires: anthropic==2.12.0
# requires: opentelemetry-instrumentation-genai-anthropic==1.3b0

from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
AnthropicInstrumentor().instrument()
unseen_calls.anthropic_messages()
