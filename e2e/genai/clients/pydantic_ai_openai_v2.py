"""pydantic-ai with its own instrumentation, and the openai package below it, by the OpenTelemetry project."""

# requires: pydantic-ai-slim[openai]==2.68.0
# requires: openai==3.54.0
# requires: httpx==0.28.1
# requires: opentelemetry-instrumentation-openai-v2==2.4b0
# requires: opentelemetry-util-genai==0.4b0

import asyncio

from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

import telemetry

telemetry.set_up()
OpenAIInstrumentor().instrument()

from pydantic_ai import Agent

import pydantic_ai_calls

Agent.instrument_all()
asyncio.run(pydantic_ai_calls.run())
