"""pydantic-ai with its own instrumentation."""

# requires: pydantic-ai-slim[openai]==2.68.0
# requires: openai==3.54.0

import asyncio

import telemetry

telemetry.set_up()

from pydantic_ai import Agent

import pydantic_ai_calls

Agent.instrument_all()
asyncio.run(pydantic_ai_calls.run())
