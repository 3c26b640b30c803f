"""The google-genai package, traced by MLflow."""

# requires: mlflow-skinny==3.17.2
# requires: google-genai==3.6.1
# requires: pandas==3.1.1

import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"

import mlflow

import unseen_calls

mlflow.gemini.autolog()
unseen_calls.google_genai()
mlflow.flush_trace_async_logging()
