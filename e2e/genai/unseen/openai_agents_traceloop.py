"""OpenAI's agents, instrumented by OpenLLMetry."""

# requires: openai-agents==0.24.0
# requires: opentelemetry-instrumentation-openai-agents==0.62.4

import agents
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
agents.set_trace_processors([])  # its own asks its maker's server
OpenAIAgentsInstrumentor().instrument()
unseen_calls.openai_agents()
