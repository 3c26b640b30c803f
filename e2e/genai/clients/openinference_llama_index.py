"""LlamaIndex, instrumented by OpenInference."""

# requires: llama-index-core==0.14.25
# requires: llama-index-llms-openai==0.8.3
# requires: openai==2.54.0
# requires: openinference-instrumentation-llama-index==4.6.1

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

import telemetry
from telemetry import OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
LlamaIndexInstrumentor().instrument()


def model(name):
    # The package checks the name, so the server's model has one that it knows.
    return OpenAI(model=name, api_base=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS,
                  additional_kwargs={"stream_options": {"include_usage": True}} if name == "gpt-4o" else {})


llm = OpenAI(model="gpt-4o", api_base=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS)
llm.complete(QUESTION)
llm.chat([ChatMessage(role="user", content=QUESTION)])
for _ in range(2):
    for _ in llm.stream_chat([ChatMessage(role="user", content=QUESTION)], stream_options={"include_usage": True}):
        pass
broken = OpenAI(model="gpt-4o", api_base=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS,
                additional_kwargs={"model": telemetry.BROKEN_MODEL})
telemetry.fails(lambda: broken.complete(QUESTION))
