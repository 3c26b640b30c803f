"""The openai package, traced by MLflow over OTLP."""

# requires: mlflow-skinny==3.17.2
# requires: pandas==2.3.3
# requires: openai==3.54.0


import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"

import mlflow

import openai_calls

mlflow.openai.autolog()
openai_calls.run(openai_calls.client())
mlflow.flush_trace_async_logging()
