"""The requests that the programs which use LiteLLM make, each within a span of the program's own."""

import litellm
from opentelemetry import trace

import telemetry
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS, fails


def set_up():
    telemetry.set_up()
    litellm.callbacks = ["otel"]


def request(model=MODEL):
    return {"model": "openai/" + model, "api_base": OPENAI_URL, "api_key": "not-needed", "max_tokens": TOKENS, "num_retries": 0,
            "max_retries": 0, "messages": [{"role": "user", "content": QUESTION}]}


def run(then=lambda: None):
    """Makes two equal requests, two equal streamed ones, and one that fails, and calls then after each answer."""
    def ask(*model, **options):
        with trace.get_tracer("app").start_as_current_span("answer"):
            answer = litellm.completion(**request(*model), **options)
            if options:
                for _ in answer:
                    pass
            then()

    set_up()
    ask()
    ask()
    for _ in range(2):
        ask(stream=True, stream_options={"include_usage": True})
    fails(lambda: ask(BROKEN_MODEL))
