"""The anthropic package, instrumented by logfire."""

# requires: logfire==5.2.0
# requires: anthropic==2.12.0

import anthropic
import logfire

import telemetry
from telemetry import BROKEN_MODEL, MODEL, MODEL_URL, QUESTION, TOKENS

# It exports to OTEL_EXPORTER_OTLP_ENDPOINT by itself.
logfire.configure(send_to_logfire=False, console=False)
client = anthropic.Anthropic(base_url=MODEL_URL, api_key="not-needed", max_retries=0)
logfire.instrument_anthropic(client)


def ask(model=MODEL, **options):
    return client.messages.create(model=model, max_tokens=TOKENS, messages=[{"role": "user", "content": QUESTION}], **options)


ask()
ask()
for _ in ask(stream=True):
    pass
for _ in ask(stream=True):
    pass
telemetry.fails(lambda: ask(BROKEN_MODEL))
logfire.shutdown()
