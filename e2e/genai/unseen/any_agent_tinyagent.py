"""any-agent, which traces itself."""

# requires: any-agent==1.18.0
# requires: any-llm-sdk[openai]==1.40.2
# requires: mcp==1.30.0

import asyncio

import telemetry
import unseen_calls
from agent_calls import weather
from telemetry import OPENAI_URL, QUESTION

telemetry.set_up()
from any_agent import AgentConfig, AnyAgent


async def ask(model, tools=()):
    agent = await AnyAgent.create_async("tinyagent", AgentConfig(model_id="openai:" + model, api_base=OPENAI_URL, api_key="not-needed",
                                                                 instructions="Help.", tools=list(tools)))
    await agent.run_async(QUESTION, max_turns=2)


unseen_calls.run(lambda model: asyncio.run(ask(model)), None, lambda model: asyncio.run(ask(model, [weather])))
