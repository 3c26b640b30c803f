"""The cohere package, instrumented by OpenInference."""

# requires: cohere==7.3.1
# requires: openinference-instrumentation-cohere==0.1.15

from openinference.instrumentation.cohere import CohereInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
CohereInstrumentor().instrument()
unseen_calls.cohere_chat()
