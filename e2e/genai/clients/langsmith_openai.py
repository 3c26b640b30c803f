"""The openai package and a function around it, traced by LangSmith over OpenTelemetry."""

# requires: langsmith[otel]==0.15.0
# requires: openai==3.54.0

import os

os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}

import langsmith
from langsmith.wrappers import wrap_openai

import openai_calls
import telemetry

provider = telemetry.set_up()
client = wrap_openai(openai_calls.client())


@langsmith.traceable(run_type="prompt")
def prompt():
    return telemetry.QUESTION


@langsmith.traceable(run_type="retriever")
def look_up():
    return [{"page_content": "a page", "type": "Document"}]


@langsmith.traceable(metadata={"thread_id": "thread-1"})
def answer():
    prompt()
    look_up()
    openai_calls.run(client)


answer()
langsmith.Client().flush()
langsmith.run_trees.get_cached_client().flush()
