"""The TuFT server, as `tuft launch` starts it, on a machine without a GPU.

    python service.py --config config.yaml --port 10610 --report FILE

Sends traces, metrics and logs by OTLP over gRPC to OTEL_EXPORTER_OTLP_ENDPOINT.
At SIGTERM it flushes them and writes to FILE which spans it has ended.
"""

import gpu_stand_ins  # noqa: F401  (before TuFT)

import argparse
import collections
import importlib.metadata
import json
import logging
import os
import secrets
import signal
import sys
import tempfile
import threading
import types
from pathlib import Path

import uvicorn
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from tuft.backends.sampling_backend import VLLMSamplingBackend
from tuft.config import ModelConfig, load_yaml_config
from tuft.server import create_root_app
from tuft.telemetry import init_telemetry
from tuft.telemetry.metrics import ResourceMetricsCollector

from models import SamplingEngine, ThreadActor, TrainingModel

HERE = Path(__file__).resolve().parent


class Observer(SpanProcessor):
    """Counts the spans that end in this process and notes those that failed."""

    def __init__(self) -> None:
        self.spans: collections.Counter[str] = collections.Counter()
        self.keys: dict[str, set[str]] = collections.defaultdict(set)
        self.errors: list[dict] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans[span.name] += 1
        attributes = span.attributes or {}
        for key, value in attributes.items():
            if key.startswith("tuft.") and key.endswith("_id"):
                self.keys[key.removeprefix("tuft.").removesuffix("_id")].add(value)
        exception = next((event.attributes for event in span.events if event.name == "exception"), None)
        if exception is None:
            return
        if span.status.status_code is not trace.StatusCode.ERROR:
            # The span of a future notes the exception and stays as it was.
            self.keys["failed_request"].add(attributes["tuft.request_id"])
            return
        self.errors.append(
            {
                "span": span.name,
                "type": exception["exception.type"],
                "message": exception["exception.message"],
                "trace_id": format(span.context.trace_id, "032x"),
                "span_id": format(span.context.span_id, "016x"),
                "payload": False,
            }
        )


class Unsent(logging.Handler):
    """Collects what the exporters could not send; the SDK only logs it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []
        logging.getLogger("opentelemetry.exporter").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def replace_models(in_ray: str | None) -> None:
    """Has TuFT's backends call the doubles in models.py.

    One model runs in a Ray actor, the others in threads. TuFT sets no telemetry
    up in its actors, and nor does this, so spans that are opened there are lost.
    """

    def get_actor(config: ModelConfig):
        name = f"training_model_{config.model_name}"
        if config.model_name != in_ray:
            return ThreadActor(TrainingModel(config), name)
        import ray

        return ray.remote(TrainingModel).options(name=name, num_cpus=0).remote(config)

    double = types.ModuleType("tuft.backends.hf_training_model")
    double.HFTrainingModel = types.SimpleNamespace(get_actor=get_actor)
    sys.modules[double.__name__] = double
    VLLMSamplingBackend._create_engine = lambda _self, config: ThreadActor(
        SamplingEngine(), f"sampling_engine_{config.model_name}"
    )


def start_ray(folder: Path) -> None:
    """Starts a Ray of one machine, on the loopback interface, that reports to nobody."""
    os.environ.update(
        RAY_USAGE_STATS_ENABLED="0",
        # Ray listens on the machine's own address otherwise, on Linux too.
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
        # Ray writes a token into the home directory otherwise.
        RAY_AUTH_TOKEN=secrets.token_hex(32),
    )
    import ray

    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 << 20,
        _temp_dir=str(folder),
        runtime_env={"env_vars": {"PYTHONPATH": str(HERE)}},
    )


def stop_ray() -> None:
    """Ends the processes of Ray."""
    import ray

    ray.shutdown()


def end_with_stdin(ended: threading.Event) -> None:
    """Ends the service when whoever started it is gone."""
    sys.stdin.read()
    while not ended.is_set():
        # The first may come before the server listens to it.
        os.kill(os.getpid(), signal.SIGTERM)
        ended.wait(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, default=HERE / "config.yaml")
    parser.add_argument("--port", type=int, default=10610)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--no-ray", action="store_true", help="all models in threads")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input is closed")
    arguments = parser.parse_args()

    # As `tuft launch`: configuration, telemetry, then the application.
    config = load_yaml_config(arguments.config)
    # Short, since Ray has its sockets below it.
    scratch = tempfile.TemporaryDirectory(prefix="tuft-", dir="/tmp", ignore_cleanup_errors=True)
    config.checkpoint_dir = Path(scratch.name, "checkpoints")
    config.persistence.file_path = Path(scratch.name, "store.json")
    config.ensure_directories()
    init_telemetry(config.telemetry)
    logging.getLogger("tuft").setLevel(logging.INFO)
    ResourceMetricsCollector.start(str(config.checkpoint_dir))
    observer, unsent = Observer(), Unsent()
    trace.get_tracer_provider().add_span_processor(observer)

    in_ray = None if arguments.no_ray else config.supported_models[0].model_name
    if in_ray:
        start_ray(Path(scratch.name, "ray"))
    replace_models(in_ray)
    app = create_root_app(config)
    # uvicorn ends at SIGTERM, with TuFT's own shutdown, which flushes its
    # telemetry, and then raises the signal once more for this handler.
    signal.signal(signal.SIGTERM, lambda *_: None)
    ended = threading.Event()
    if arguments.end_with_stdin:
        threading.Thread(target=end_with_stdin, args=[ended], daemon=True).start()
    try:
        uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning")
    finally:
        ended.set()
        if in_ray:
            stop_ray()
        if arguments.report:
            names = ["tuft", "tinker", "opentelemetry-sdk", "opentelemetry-instrumentation-fastapi", "fastapi", "ray"]
            report = {
                "versions": {name: importlib.metadata.version(name) for name in names},
                "spans": dict(sorted(observer.spans.items())),
                "keys": {key: sorted(values) for key, values in sorted(observer.keys.items())},
                "errors": observer.errors,
                "in_ray": in_ray,
                "unsent": unsent.messages,
            }
            arguments.report.write_text(json.dumps(report, indent=1))
        scratch.cleanup()


if __name__ == "__main__":
    main()
