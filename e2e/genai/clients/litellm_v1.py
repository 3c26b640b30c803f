"""LiteLLM with its own telemetry, whose attributes go onto the span of the program."""

# requires: litellm==1.106.2

import time

import litellm_calls

# LiteLLM writes them a moment after the answer. A span that has ended loses them.
litellm_calls.run(then=lambda: time.sleep(0.5))
