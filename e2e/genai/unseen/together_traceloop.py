"""The together package, instrumented by OpenLLMetry."""

# requires: together==1.6.0
# requires: opentelemetry-instrumentation-together==0.62.4

from opentelemetry.instrumentation.together import TogetherAiInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
TogetherAiInstrumentor().instrument()
unseen_calls.together_chat()
