"""smolagents, instrumented by OpenInference: an agent with a tool, asked twice, one that streams, and one whose model fails."""

# requires: smolagents==1.26.0
# requires: openai==3.54.0
# requires: openinference-instrumentation-smolagents==0.1.43

import smolagents
from openinference.instrumentation.smolagents import SmolagentsInstrumentor

import telemetry
from agent_calls import weather
from telemetry import BROKEN_MODEL, MODEL, OPENAI_URL, QUESTION, TOKENS

telemetry.set_up()
SmolagentsInstrumentor().instrument()


def agent(name, **options):
    model = smolagents.OpenAIModel(name, api_base=OPENAI_URL, api_key="not-needed", max_tokens=TOKENS,
                                   client_kwargs={"max_retries": 0})
    return smolagents.ToolCallingAgent(tools=[smolagents.tool(weather)], model=model, name="helper", description="It helps.",
                                       max_steps=1, verbosity_level=0, **options)


helper = agent(MODEL)
helper.run(QUESTION)
helper.run(QUESTION)
agent(MODEL, stream_outputs=True).run(QUESTION)
telemetry.fails(lambda: agent(BROKEN_MODEL).run(QUESTION))
