"""BeeAI's agents, instrumented by OpenInference."""

# requires: beeai-framework==0.1.85
# requires: openinference-instrumentation-beeai==0.1.30

import asyncio

from beeai_framework.adapters.openai import OpenAIChatModel
from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.backend import UserMessage
from beeai_framework.tools import tool
from openinference.instrumentation.beeai import BeeAIInstrumentor

import telemetry
import unseen_calls
from telemetry import OPENAI_URL, QUESTION

telemetry.set_up()
BeeAIInstrumentor().instrument()


@tool
def weather(city: str) -> str:
    """Says what the weather is."""
    return f"it rains in {city}"


def model(name):
    return OpenAIChatModel(name, base_url=OPENAI_URL, api_key="not-needed", settings={"max_retries": 0, "num_retries": 0})


async def ask(name, **options):
    await model(name).run([UserMessage(QUESTION)], **options)


async def agent(name):
    await RequirementAgent(llm=model(name), tools=[weather]).run(QUESTION, max_iterations=2, max_retries_per_step=0)


unseen_calls.run(lambda name: asyncio.run(ask(name)))
unseen_calls.step("stream", lambda: asyncio.run(ask("tiny-1", stream=True)))
unseen_calls.step("stream cut", lambda: asyncio.run(ask("tiny-cut", stream=True)))
unseen_calls.step("agent", lambda: asyncio.run(agent("tiny-1")))
