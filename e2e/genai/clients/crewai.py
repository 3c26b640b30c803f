"""CrewAI, instrumented by OpenInference, and the openai package below it: a crew with a tool, one that streams, and one that fails."""

# requires: crewai==1.15.30
# requires: openai==2.54.0
# requires: openinference-instrumentation-crewai==1.1.21
# requires: openinference-instrumentation-openai==0.1.66

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_DISABLE_VERSION_CHECK": "true"}

import telemetry

telemetry.set_up()

import crewai
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor

import agent_calls
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

CrewAIInstrumentor().instrument()
OpenAIInstrumentor().instrument()


@tool
def weather(city: str) -> str:
    """Says what the weather is."""
    return agent_calls.weather(city)


def ask(name, **options):
    model = crewai.LLM(model="openai/" + name, base_url=OPENAI_URL, api_key="not-needed", max_tokens=TOKENS, max_retries=0, **options)
    agent = crewai.Agent(role="helper", goal="help", backstory="It helps.", llm=model, tools=[weather], max_iter=3, max_retry_limit=0)
    task = crewai.Task(description=QUESTION, expected_output="An answer.", agent=agent)
    crewai.Crew(agents=[agent], tasks=[task]).kickoff()


ask(MODEL)
ask(MODEL, stream=True)
telemetry.fails(lambda: ask(BROKEN_MODEL))
