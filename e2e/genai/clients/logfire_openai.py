"""The openai package, instrumented by logfire."""

# requires: logfire==5.2.0
# requires: openai==3.54.0

import logfire

import openai_calls

# It exports to OTEL_EXPORTER_OTLP_ENDPOINT by itself.
logfire.configure(send_to_logfire=False, console=False)
client = openai_calls.client()
logfire.instrument_openai(client)
openai_calls.run(client)
logfire.shutdown()
