"""The ollama package, instrumented by OpenLLMetry."""

# requires: ollama==0.6.3
# requires: opentelemetry-instrumentation-ollama==0.62.4

from opentelemetry.instrumentation.ollama import OllamaInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
OllamaInstrumentor().instrument()
unseen_calls.ollama_chat()
