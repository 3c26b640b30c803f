"""Microsoft's Agent Framework with its own telemetry: an agent with a tool, one that streams, and one whose model fails."""

# requires: agent-framework-core==1.23.0
# requires: agent-framework-openai==1.17.0
# requires: openai==3.54.0

import asyncio

import openai
from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()


def agent(name):
    client = openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    return Agent(OpenAIChatCompletionClient(name, async_client=client), name="helper", tools=[weather],
                 default_options={"max_tokens": TOKENS})


async def run():
    await agent(MODEL).run(QUESTION)
    async for _ in agent(MODEL).run(QUESTION, stream=True):
        pass
    try:
        await agent(BROKEN_MODEL).run(QUESTION)
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
