"""AutoGen with its own telemetry, which has agents and tools, and the openai package below it, by OpenInference."""

# requires: autogen-agentchat==0.7.5
# requires: autogen-ext[openai]==0.7.5
# requires: openai==2.54.0
# requires: openinference-instrumentation-openai==0.1.66

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openinference.instrumentation.openai import OpenAIInstrumentor

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
OpenAIInstrumentor().instrument()

INFO = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}


def agent(name, **options):
    model = OpenAIChatCompletionClient(model=name, base_url=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS,
                                       model_info=INFO, stream_options={"include_usage": True})
    return AssistantAgent("helper", model, tools=[weather], reflect_on_tool_use=True, **options)


async def run():
    await agent(MODEL).run(task=QUESTION)
    await agent(MODEL, model_client_stream=True).run(task=QUESTION)
    try:
        await agent(BROKEN_MODEL).run(task=QUESTION)
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
