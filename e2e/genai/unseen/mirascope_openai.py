"""Mirascope, which traces itself."""

# requires: mirascope[all]==2.8.2
# requires: opentelemetry-sdk==1.45.2

import os

os.environ["OPENAI_BASE_URL"] = os.environ["MODEL_URL"] + "/v1"

from mirascope import llm, ops
from opentelemetry import trace

import telemetry
import unseen_calls
from unseen_calls import QUESTION

ops.configure(tracer_provider=telemetry.set_up())
ops.instrument_llm()


@llm.tool
def weather(city: str) -> str:
    """Says what the weather is."""
    return f"it rains in {city}"


def ask(model, tools=()):
    return llm.Model("openai/" + model + ":completions").call(QUESTION, tools=list(tools))


def stream(model):
    return llm.Model("openai/" + model + ":completions").stream(QUESTION).chunk_stream()


unseen_calls.run(ask, stream, lambda model: ask(model, [weather]))
trace.get_tracer_provider().force_flush()
