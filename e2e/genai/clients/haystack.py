"""Haystack, instrumented by OpenInference: an agent with a tool, one that streams, and one whose model fails."""

# requires: haystack-ai==3.4.0
# requires: openai==3.54.0
# requires: openinference-instrumentation-haystack==0.1.46

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import telemetry

telemetry.set_up()

from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from openinference.instrumentation.haystack import HaystackInstrumentor

from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

HaystackInstrumentor().instrument()


def ask(name, **options):
    model = OpenAIChatGenerator(Secret.from_token("not-needed"), name, api_base_url=OPENAI_URL, max_retries=0,
                                generation_kwargs={"max_completion_tokens": TOKENS} | options)
    pipeline = Pipeline()
    pipeline.add_component("helper", Agent(chat_generator=model, tools=[create_tool_from_function(weather)],
                                           streaming_callback=(lambda chunk: None) if options else None))
    pipeline.run({"helper": {"messages": [ChatMessage.from_user(QUESTION)]}})


ask(MODEL)
ask(MODEL, stream_options={"include_usage": True})
telemetry.fails(lambda: ask(BROKEN_MODEL))
