"""The openai package, instrumented by logfire."""

# requires: logfire==5.2.0
# requires: openai==3.54.0

import logfire
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import openai_calls

logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[BatchSpanProcessor(OTLPSpanExporter())])
client = openai_calls.client()
logfire.instrument_openai(client)
openai_calls.run(client)
logfire.shutdown()
