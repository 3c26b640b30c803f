"""The anthropic package, instrumented by OpenLIT."""

# requires: openlit==1.45.0
# requires: anthropic==0.125.0

import os
import tempfile

import openlit

import unseen_calls

# OpenLIT fetches prices unless a file has them.
with tempfile.NamedTemporaryFile("w", suffix=".json") as prices:
    prices.write("{}")
    prices.flush()
    openlit.init(pricing_json=prices.name, otlp_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], application_name=os.environ["OTEL_SERVICE_NAME"])
unseen_calls.anthropic_messages()
