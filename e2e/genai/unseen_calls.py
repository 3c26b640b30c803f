"""What the programs in unseen/ ask: each SDK in the ways in which programs use it."""

import asyncio
import contextlib
import sys
import time

from telemetry import MODEL_URL, OPENAI_URL, QUESTION
from model_server import BROKEN_MODEL, BUSY_MODEL, CACHED_MODEL, CUT_MODEL, LIMITED_MODEL

MODEL, EMBEDDING_MODEL = "tiny-1", "tiny-embed"
MESSAGES = [{"role": "user", "content": QUESTION}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Says what the weather is.", "parameters": PARAMETERS}}


def step(name, ask):
    """Asks, whatever comes of it, and says how it ended."""
    try:
        ask()
        print(f"{name}: ok", file=sys.stderr)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:120]}", file=sys.stderr)
    time.sleep(0.1)


def drain(stream, most=None):
    """Reads a stream, or its first events, and closes it."""
    for number, _ in enumerate(stream):
        if number + 1 == most:
            break
    with contextlib.suppress(AttributeError):
        stream.close()


def run(ask, stream=None, tool=None, embed=None, retrying=None):
    """Makes the requests that the SDK can make. ask and stream take the name of a model."""
    step("plain", lambda: ask(MODEL))
    step("plain again", lambda: ask(MODEL))
    step("cached", lambda: ask(CACHED_MODEL))
    if tool:
        step("tool", lambda: tool(MODEL))
    if embed:
        step("embed", lambda: embed(EMBEDDING_MODEL))
    step("500", lambda: ask(BROKEN_MODEL))
    step("429", lambda: ask(LIMITED_MODEL))
    if retrying:
        step("429 and again", lambda: retrying(BUSY_MODEL))
    if stream:
        step("stream", lambda: drain(stream(MODEL)))
        step("stream again", lambda: drain(stream(MODEL)))
        step("stream cached", lambda: drain(stream(CACHED_MODEL)))
        step("stream 500", lambda: drain(stream(BROKEN_MODEL)))
        step("stream cut", lambda: drain(stream(CUT_MODEL)))
        step("stream left", lambda: drain(stream(MODEL), 3))


def openai_chat():
    import openai
    client = openai.OpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    create = client.chat.completions.create
    run(lambda model: create(model=model, messages=MESSAGES),
        lambda model: create(model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}),
        lambda model: create(model=model, messages=MESSAGES, tools=[TOOL]),
        lambda model: client.embeddings.create(model=model, input=QUESTION),
        lambda model: client.with_options(max_retries=3).chat.completions.create(model=model, messages=MESSAGES))


def openai_responses():
    import openai
    client = openai.OpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    create = client.responses.create
    run(lambda model: create(model=model, input=QUESTION), lambda model: create(model=model, input=QUESTION, stream=True),
        lambda model: create(model=model, input=QUESTION, tools=[{"type": "function", **TOOL["function"]}]))


def anthropic_messages():
    import anthropic
    client = anthropic.Anthropic(base_url=MODEL_URL, api_key="not-needed", max_retries=0)
    create = client.messages.create
    tool = {"name": "weather", "description": "Says what the weather is.", "input_schema": PARAMETERS}
    run(lambda model: create(model=model, max_tokens=100, messages=MESSAGES),
        lambda model: create(model=model, max_tokens=100, messages=MESSAGES, stream=True),
        lambda model: create(model=model, max_tokens=100, messages=MESSAGES, tools=[tool]), None,
        lambda model: client.with_options(max_retries=3).messages.create(model=model, max_tokens=100, messages=MESSAGES))

    def helper():
        with client.messages.stream(model=MODEL, max_tokens=100, messages=MESSAGES) as stream:
            stream.get_final_message()
    step("stream helper", helper)


def ollama_chat():
    import ollama
    client = ollama.Client(host=MODEL_URL)
    run(lambda model: client.chat(model=model, messages=MESSAGES), lambda model: client.chat(model=model, messages=MESSAGES, stream=True),
        lambda model: client.chat(model=model, messages=MESSAGES, tools=[TOOL]), lambda model: client.embed(model=model, input=QUESTION))


def cohere_chat():
    import cohere
    client = cohere.ClientV2(api_key="not-needed", base_url=MODEL_URL)
    options = {"max_retries": 0}
    run(lambda model: client.chat(model=model, messages=MESSAGES, request_options=options),
        lambda model: client.chat_stream(model=model, messages=MESSAGES, request_options=options),
        lambda model: client.chat(model=model, messages=MESSAGES, tools=[TOOL], request_options=options),
        lambda model: client.embed(model=model, texts=[QUESTION], input_type="search_query", embedding_types=["float"]),
        lambda model: client.chat(model=model, messages=MESSAGES, request_options={"max_retries": 3}))



def together_chat():
    import together
    client = together.Together(base_url=OPENAI_URL, api_key="not-needed", max_retries=0)
    create = client.chat.completions.create
    run(lambda model: create(model=model, messages=MESSAGES),
        lambda model: create(model=model, messages=MESSAGES, stream=True),
        lambda model: create(model=model, messages=MESSAGES, tools=[TOOL]))


def google_genai():
    from google import genai
    client = genai.Client(api_key="not-needed", http_options={"base_url": MODEL_URL})
    generate, stream = client.models.generate_content, client.models.generate_content_stream
    tool = {"function_declarations": [{"name": "weather", "description": "Says what the weather is."}]}
    run(lambda model: generate(model=model, contents=QUESTION), lambda model: stream(model=model, contents=QUESTION),
        lambda model: generate(model=model, contents=QUESTION, config={"tools": [tool]}),
        lambda model: client.models.embed_content(model=model, contents=QUESTION))



def langchain_chat(*callbacks):
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    @tool
    def weather(city: str) -> str:
        """Says what the weather is."""
        return f"it rains in {city}"

    def chat(model, retries=0):
        return ChatOpenAI(model=model, base_url=OPENAI_URL, api_key="not-needed", max_retries=retries, stream_usage=True)
    config = {"callbacks": list(callbacks)} if callbacks else None
    run(lambda model: chat(model).invoke(QUESTION, config), lambda model: chat(model).stream(QUESTION, config),
        lambda model: chat(model).bind_tools([weather]).invoke(QUESTION, config),
        lambda model: OpenAIEmbeddings(model=model, base_url=OPENAI_URL, api_key="not-needed", max_retries=0,
                                       check_embedding_ctx_length=False).embed_query(QUESTION),
        lambda model: chat(model, 3).invoke(QUESTION, config))
    with contextlib.suppress(ImportError):
        from langchain.agents import create_agent
        step("agent", lambda: create_agent(chat(MODEL), [weather]).invoke({"messages": MESSAGES}, config))
        step("agent 500", lambda: create_agent(chat(BROKEN_MODEL), [weather]).invoke({"messages": MESSAGES}, config))

        @tool
        def expert(city: str) -> str:
            """Knows all."""
            return create_agent(chat(MODEL), [], name="expert").invoke({"messages": MESSAGES})["messages"][-1].text
        step("agent within an agent", lambda: create_agent(chat(MODEL), [expert], name="helper").invoke({"messages": MESSAGES}, config))


def openai_agents():
    import agents
    import openai
    agents.set_default_openai_client(openai.AsyncOpenAI(base_url=OPENAI_URL, api_key="not-needed", max_retries=0), use_for_tracing=False)

    @agents.function_tool
    def weather(city: str) -> str:
        """Says what the weather is."""
        return f"it rains in {city}"

    def agent(model, api, tools=()):
        agents.set_default_openai_api(api)
        return agents.Agent(name="helper", instructions="Help.", model=model, tools=list(tools))

    async def streamed(of):
        async for _ in agents.Runner.run_streamed(of, QUESTION).stream_events():
            pass
    with asyncio.Runner() as loop:
        for api in ("responses", "chat_completions"):
            run(lambda model: loop.run(agents.Runner.run(agent(model, api), QUESTION)),
                lambda model: loop.run(streamed(agent(model, api))) or (),
                lambda model: loop.run(agents.Runner.run(agent(model, api, [weather]), QUESTION)))
            inner = agent(MODEL, api).as_tool("expert", "Knows all.")
            step("agent within an agent", lambda: loop.run(agents.Runner.run(agent(MODEL, api, [inner]), QUESTION)))


def azure_inference():
    from azure.ai.inference import ChatCompletionsClient, EmbeddingsClient
    from azure.core.credentials import AzureKeyCredential
    client = ChatCompletionsClient(OPENAI_URL, AzureKeyCredential("not-needed"), retry_total=0)
    again = ChatCompletionsClient(OPENAI_URL, AzureKeyCredential("not-needed"), retry_backoff_factor=0.1)
    run(lambda model: client.complete(model=model, messages=MESSAGES), lambda model: client.complete(model=model, messages=MESSAGES, stream=True),
        lambda model: client.complete(model=model, messages=MESSAGES, tools=[TOOL]),
        lambda model: EmbeddingsClient(OPENAI_URL, AzureKeyCredential("not-needed")).embed(model=model, input=[QUESTION]),
        lambda model: again.complete(model=model, messages=MESSAGES))




def dspy_chat():
    import dspy

    def llm(model, retries=0):
        return dspy.LM("openai/" + model, api_base=OPENAI_URL, api_key="not-needed", num_retries=retries, cache=False, max_retries=0)

    def predict(model):
        with dspy.context(lm=llm(model), adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
            return dspy.Predict("question -> answer")(question=QUESTION)
    run(lambda model: llm(model)(QUESTION), None, None, None, None)
    step("predict", lambda: predict(MODEL))
    step("predict 500", lambda: predict(BROKEN_MODEL))



def agno_agents():
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agent_calls import weather

    def agent(model, tools=(), retries=0):
        return Agent(model=OpenAIChat(id=model, base_url=OPENAI_URL, api_key="not-needed", max_retries=retries), tools=list(tools), telemetry=False)
    run(lambda model: agent(model).run(QUESTION), lambda model: agent(model).run(QUESTION, stream=True),
        lambda model: agent(model, [weather]).run(QUESTION), None, lambda model: agent(model, retries=3).run(QUESTION))


def langgraph_anthropic():
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_core.tools import tool

    @tool
    def weather(city: str) -> str:
        """Says what the weather is."""
        return f"it rains in {city}"

    def agent(model, tools=()):
        return create_agent(ChatAnthropic(model=model, base_url=MODEL_URL, api_key="not-needed", max_retries=0), list(tools))
    ask = {"messages": MESSAGES}
    step("plain", lambda: agent(MODEL).invoke(ask))
    step("cached", lambda: agent(CACHED_MODEL).invoke(ask))
    step("tool", lambda: agent(MODEL, [weather]).invoke(ask))
    step("500", lambda: agent(BROKEN_MODEL).invoke(ask))
    step("stream", lambda: drain(agent(MODEL).stream(ask, stream_mode="messages")))

    @tool
    def expert(city: str) -> str:
        """Knows all."""
        return str(agent(MODEL).invoke(ask)["messages"][-1].content)
    step("agent within an agent", lambda: agent(MODEL, [expert]).invoke(ask))
