"""LangChain, instrumented by OpenInference, and the openai package below it, by the OpenTelemetry project."""

# requires: langchain==1.4.7
# requires: langchain-openai==1.7.3
# requires: openai==2.54.0
# requires: openinference-instrumentation-langchain==0.1.80
# requires: opentelemetry-instrumentation-openai-v2==2.4b0
# requires: opentelemetry-util-genai==0.4b0

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

import telemetry

telemetry.set_up()
LangChainInstrumentor().instrument()
OpenAIInstrumentor().instrument()

import langchain_calls

langchain_calls.run()
