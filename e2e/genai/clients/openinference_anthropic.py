"""The anthropic package, instrumented by OpenInference."""

# requires: anthropic==2.12.0
# requires: openinference-instrumentation-anthropic==3.1.0

import anthropic
from openinference.instrumentation.anthropic import AnthropicInstrumentor

import telemetry
from telemetry import BROKEN_MODEL, MODEL, MODEL_URL, QUESTION, TOKENS

telemetry.set_up()
AnthropicInstrumentor().instrument()
client = anthropic.Anthropic(base_url=MODEL_URL, api_key="not-needed", max_retries=0)


def ask(model=MODEL, **options):
    return client.messages.create(model=model, max_tokens=TOKENS, messages=[{"role": "user", "content": QUESTION}], **options)


ask()
ask()
for _ in ask(stream=True):
    pass
with client.messages.stream(model=MODEL, max_tokens=TOKENS, messages=[{"role": "user", "content": QUESTION}]) as stream:
    stream.until_done()
telemetry.fails(lambda: ask(BROKEN_MODEL))
