"""LangChain, traced by LangSmith over OpenTelemetry."""

# requires: langchain==1.4.7
# requires: langchain-openai==1.7.3
# requires: langsmith[otel]==0.15.0
# requires: openai==3.54.0

import os

os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}

import langsmith

import langchain_calls
import telemetry

telemetry.set_up()
langchain_calls.run()
langsmith.run_trees.get_cached_client().flush()
