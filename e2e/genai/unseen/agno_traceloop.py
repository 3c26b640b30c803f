"""Agno, instrumented by OpenLLMetry."""

# requires: agno==3.1.10
# requires: openai==3.57.0
# requires: opentelemetry-instrumentation-agno==0.62.4

from opentelemetry.instrumentation.agno import AgnoInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
AgnoInstrumentor().instrument()
unseen_calls.agno_agents()
