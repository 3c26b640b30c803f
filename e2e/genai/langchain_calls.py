"""The requests that the programs which use LangChain make."""

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS, fails


def model(name=MODEL):
    return ChatOpenAI(model=name, base_url=OPENAI_URL, api_key="not-needed", max_retries=0, max_completion_tokens=TOKENS,
                      stream_usage=True)


def run():
    """Makes two equal requests, two equal streamed ones, and one that fails."""
    chain = ChatPromptTemplate.from_messages([("user", "{question}")]) | model()
    chain.invoke({"question": QUESTION})
    chain.invoke({"question": QUESTION})
    for _ in range(2):
        for _ in chain.stream({"question": QUESTION}):
            pass
    fails(lambda: model(BROKEN_MODEL).invoke(QUESTION))
