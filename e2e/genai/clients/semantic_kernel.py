"""Semantic Kernel with its own telemetry: an agent with a tool, one that streams, and one whose model fails."""

# requires: semantic-kernel==1.45.0
# requires: openai==2.54.0

import asyncio
import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"] = "true"

import openai
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.functions import KernelArguments, kernel_function

import agent_calls
import telemetry
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()


class Plugin:
    @kernel_function(description="Says what the weather is.")
    def weather(self, city: str) -> str:
        return agent_calls.weather(city)


def agent(name):
    client = openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    return ChatCompletionAgent(service=OpenAIChatCompletion(name, async_client=client), name="helper", plugins=[Plugin()],
                               arguments=KernelArguments(OpenAIChatPromptExecutionSettings(max_tokens=TOKENS)))


async def run():
    await agent(MODEL).get_response(QUESTION)
    async for _ in agent(MODEL).invoke_stream(QUESTION):
        pass
    try:
        await agent(BROKEN_MODEL).get_response(QUESTION)
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
