"""The requests of the programs that use pydantic-ai: an agent with a tool, one that streams, and one that fails."""

import asyncio

import openai
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS


def agent(name, client):
    model = OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))
    return Agent(model, name="helper", tools=[weather], model_settings={"max_tokens": TOKENS})


async def run():
    client = openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    await agent(MODEL, client).run(QUESTION)
    async with agent(MODEL, client).run_stream(QUESTION) as stream:
        async for _ in stream.stream_text():
            pass
    try:
        await agent(BROKEN_MODEL, client).run(QUESTION)
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")
