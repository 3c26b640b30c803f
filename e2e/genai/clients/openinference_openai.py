"""The openai package, instrumented by OpenInference."""

# requires: openai==3.54.0
# requires: openinference-instrumentation-openai==0.1.66

from openinference.instrumentation.openai import OpenAIInstrumentor

import openai_calls
import telemetry

telemetry.set_up()
OpenAIInstrumentor().instrument()
openai_calls.run(openai_calls.client())
