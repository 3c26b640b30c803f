"""The OpenAI Agents SDK, instrumented by OpenInference: an agent with a tool, and one whose model fails."""

# requires: openai-agents==0.24.0
# requires: openai==3.54.0
# requires: openinference-instrumentation-openai-agents==2.6.0

import asyncio

import agents
import openai
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
OpenAIAgentsInstrumentor().instrument()


async def run():
    client = openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)

    def agent(name):
        return agents.Agent(
            name="helper", tools=[agents.function_tool(weather)], model=agents.OpenAIChatCompletionsModel(name, client),
            model_settings=agents.ModelSettings(max_tokens=TOKENS, include_usage=True))

    await agents.Runner.run(agent(MODEL), QUESTION)
    async for _ in agents.Runner.run_streamed(agent(MODEL), QUESTION).stream_events():
        pass
    for _ in range(2):
        try:
            await agents.Runner.run(agent(BROKEN_MODEL), QUESTION)
        except openai.APIError:
            continue
        raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
