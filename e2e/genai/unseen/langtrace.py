"""The packages openai and anthropic, instrumented by Langtrace."""

# requires: langtrace-python-sdk==3.8.21
# requires: openai==1.109.1
# requires: anthropic==0.125.0
# requires: setuptools==79.0.1
# requires: importlib-metadata==10.2.0
# requires: opentelemetry-exporter-otlp-proto-http==1.45.2

import os

os.environ["LANGTRACE_ERROR_REPORTING"] = "False"  # to its maker

from langtrace_python_sdk import langtrace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

import unseen_calls

langtrace.init(custom_remote_exporter=OTLPSpanExporter(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"), batch=True, service_name="langtrace",
               disable_logging=True)
unseen_calls.openai_chat()
unseen_calls.anthropic_messages()
