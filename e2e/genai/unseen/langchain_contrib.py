"""LangChain, instrumented by OpenTelemetry."""

# requires: langchain==1.5.2
# requires: langchain-openai==1.7.4
# requires: opentelemetry-instrumentation-genai-langchain==1.3b0

from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
LangChainInstrumentor().instrument()
unseen_calls.langchain_chat()
