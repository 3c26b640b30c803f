"""The azure-ai-inference package, which traces itself."""

# requires: azure-ai-inference==1.0.0b9
# requires: azure-core-tracing-opentelemetry==1.0.0b13

from azure.core.settings import settings
from azure.ai.inference.tracing import AIInferenceInstrumentor

import telemetry
import unseen_calls

telemetry.set_up()
settings.tracing_implementation = "opentelemetry"
AIInferenceInstrumentor().instrument()
unseen_calls.azure_inference()
