"""Google's Agent Development Kit with its own telemetry: an agent with a tool, one that streams, and one whose model fails."""

# requires: google-adk==2.13.0
# requires: litellm==1.106.2
# requires: mcp==2.3.0
# requires: opentelemetry-exporter-otlp-proto-http==1.44.0

import asyncio

import telemetry

telemetry.set_up()

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS


async def ask(name, streaming=StreamingMode.NONE):
    model = LiteLlm("openai/" + name, api_base=OPENAI_URL, api_key="not-needed", max_tokens=TOKENS, num_retries=0, max_retries=0)
    runner = InMemoryRunner(LlmAgent(name="helper", model=model, tools=[weather]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user-1", session_id="session-1")
    question = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    async for _ in runner.run_async(user_id="user-1", session_id=session.id, new_message=question,
                                    run_config=RunConfig(streaming_mode=streaming)):
        pass


async def run():
    await ask(MODEL)
    await ask(MODEL, StreamingMode.SSE)
    try:
        await ask(BROKEN_MODEL)
    except Exception:
        return
    raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
