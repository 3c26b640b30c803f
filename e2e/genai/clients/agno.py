"""agno, instrumented by OpenInference: an agent with a tool, one that streams, and one whose model fails."""

# requires: agno==3.1.10
# requires: openai==3.54.0
# requires: openinference-instrumentation-agno==1.0.15

import os

os.environ["AGNO_TELEMETRY"] = "false"

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from openinference.instrumentation.agno import AgnoInstrumentor

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
AgnoInstrumentor().instrument()


def agent(name):
    model = OpenAIChat(id=name, base_url=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS)
    return Agent(model=model, name="helper", tools=[weather], session_id="session-1", user_id="user-1", telemetry=False)


agent(MODEL).run(QUESTION)
for _ in agent(MODEL).run(QUESTION, stream=True):
    pass
agent(BROKEN_MODEL).run(QUESTION)
