"""An agent of LlamaIndex with a tool, and one whose model fails, instrumented by OpenInference."""

# requires: llama-index-core==0.14.25
# requires: llama-index-llms-openai==0.8.3
# requires: openai==2.54.0
# requires: openinference-instrumentation-llama-index==4.6.1

import asyncio

import openai
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
LlamaIndexInstrumentor().instrument()


def agent(streaming, **options):
    # The package checks the name, so the server's model has one that it knows.
    llm = OpenAI(model="gpt-4o", api_base=OPENAI_URL, api_key="not-needed", max_retries=0, max_tokens=TOKENS, additional_kwargs=options)
    return FunctionAgent(name="helper", tools=[weather], llm=llm, streaming=streaming)


async def run():
    await agent(False).run(user_msg=QUESTION)
    await agent(True, stream_options={"include_usage": True}).run(user_msg=QUESTION)
    try:
        await agent(False, model=BROKEN_MODEL).run(user_msg=QUESTION)
    except openai.APIError:
        return
    raise SystemExit("the request to the broken model did not fail")


asyncio.run(run())
