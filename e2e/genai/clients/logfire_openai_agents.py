"""The OpenAI Agents SDK with OpenAI's Responses API, instrumented by logfire: an agent with a tool, and one whose model fails."""

# requires: logfire==5.2.0
# requires: openai-agents==0.24.0
# requires: openai==3.54.0

import asyncio

import agents
import logfire
import openai

from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

agents.set_trace_processors([])  # which send to OpenAI
# It exports to OTEL_EXPORTER_OTLP_ENDPOINT by itself.
logfire.configure(send_to_logfire=False, console=False)
logfire.instrument_openai_agents()


async def run():
    client = openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)

    def agent(name):
        return agents.Agent(
            name="helper", tools=[agents.function_tool(weather)], model=agents.OpenAIResponsesModel(name, client),
            model_settings=agents.ModelSettings(max_tokens=TOKENS))

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
logfire.shutdown()
