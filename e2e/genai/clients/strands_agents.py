"""Strands Agents with its own telemetry: an agent with a tool, asked twice, and one whose model fails."""

# requires: strands-agents[otel,openai]==1.62.0
# requires: openai==2.54.0

import strands
from strands.models.openai import OpenAIModel

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()


def agent(name):
    model = OpenAIModel(client_args={"base_url": OPENAI_URL, "api_key": "not-needed", "max_retries": 0}, model_id=name,
                        params={"max_tokens": TOKENS})
    return strands.Agent(model=model, name="helper", tools=[strands.tool(weather)], callback_handler=None, retry_strategy=None,
                         trace_attributes={"session.id": "session-1"})


helper = agent(MODEL)
helper(QUESTION)
helper(QUESTION)
telemetry.fails(lambda: agent(BROKEN_MODEL)(QUESTION))
