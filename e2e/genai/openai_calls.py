"""The requests that the programs which use the openai package make."""

import openai

from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS, fails


def client():
    # Without retries each request is one attempt.
    return openai.OpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)


def ask(client, model=MODEL, **options):
    return client.chat.completions.create(
        model=model, max_tokens=TOKENS, messages=[{"role": "user", "content": QUESTION}], **options)


def stream(client):
    for _ in ask(client, stream=True, stream_options={"include_usage": True}):
        pass


def run(client):
    """Makes two equal requests, two equal streamed ones, and one that fails."""
    ask(client)
    ask(client)
    stream(client)
    stream(client)
    fails(lambda: ask(client, BROKEN_MODEL))
