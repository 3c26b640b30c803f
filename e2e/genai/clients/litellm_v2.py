"""LiteLLM with the second version of its own telemetry, which is for its asynchronous functions."""

# requires: litellm==1.106.2

import asyncio
import os

os.environ["LITELLM_OTEL_V2"] = "true"

import litellm
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER
from opentelemetry import trace

import litellm_calls
from telemetry import BROKEN_MODEL


async def ask(*model, **options):
    with trace.get_tracer("app").start_as_current_span("answer"):
        answer = await litellm.acompletion(**litellm_calls.request(*model), **options)
        if options:
            async for _ in answer:
                pass


async def run():
    await ask()
    await ask()
    for _ in range(2):
        await ask(stream=True, stream_options={"include_usage": True})
    try:
        await ask(BROKEN_MODEL)
    except litellm.InternalServerError:
        await GLOBAL_LOGGING_WORKER.flush()
        return
    raise SystemExit("the request to the broken model did not fail")


litellm_calls.set_up()
asyncio.run(run())
