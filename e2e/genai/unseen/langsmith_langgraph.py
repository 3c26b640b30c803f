"""LangGraph with Anthropic's models, traced by LangSmith over OTLP."""

# requires: langsmith[otel]==0.15.1
# requires: langchain==1.5.2
# requires: langchain-anthropic==1.7.10

import os

os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true", "LANGSMITH_API_KEY": "key",
               "LANGSMITH_ENDPOINT": "http://127.0.0.1:1"}

import telemetry
import unseen_calls

provider = telemetry.set_up()
unseen_calls.langgraph_anthropic()
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
provider.force_flush()
