"""LiteLLM with its own telemetry, with a span for each request."""

# requires: litellm==1.106.2

import os

os.environ["USE_OTEL_LITELLM_REQUEST_SPAN"] = "true"

import litellm_calls

litellm_calls.run()
