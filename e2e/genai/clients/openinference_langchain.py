"""LangChain, instrumented by OpenInference."""

# requires: langchain==1.4.7
# requires: langchain-openai==1.7.3
# requires: openai==3.54.0
# requires: openinference-instrumentation-langchain==0.1.80

from openinference.instrumentation.langchain import LangChainInstrumentor

import telemetry

telemetry.set_up()
LangChainInstrumentor().instrument()

import langchain_calls

langchain_calls.run()
