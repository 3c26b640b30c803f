#!/usr/bin/env python3
"""Records what a training loop sends through NVIDIA's NeMo Lens.

    record.py --megatron CHECKOUT {default,per_step,newer} FOLDER

It runs in an environment of Python 3.13 with nemo-lens[sdk]==0.1.0. CHECKOUT is
a Megatron-LM repository at the commit that docs/evidence/clients.md names: its
megatron/core/telemetry records the metrics. The loop makes the spans and the
resource that megatron/training makes there, without a GPU and without training;
"newer" makes those of the newer names, which no package sends yet.

FOLDER/recording.jsonl has a request a line: when it arrived, its signal, and the
request as OTLP/JSON.
"""

import argparse
import base64
import importlib.util
import json
import os
import pathlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

IDS = ("traceId", "spanId", "parentSpanId")
SIGNALS = ("traces", "metrics")
STEP = 0.04
LOG_INTERVAL = 5
BATCH, SEQUENCE = 64, 2048


class Sink(BaseHTTPRequestHandler):
    """Takes OTLP over HTTP."""

    def do_POST(self):
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        signal = self.path.rsplit("/", 1)[-1]
        request = ExportTraceServiceRequest() if signal == "traces" else ExportMetricsServiceRequest()
        request.ParseFromString(body)
        self.server.requests.append({"at": time.time(), "signal": signal, "request": hexadecimal(MessageToDict(request))})
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format, *args):
        pass


def hexadecimal(value):
    """Returns a request with ids in hexadecimal digits, as OTLP/JSON has them, and without this machine."""
    if isinstance(value, list):
        return [hexadecimal(v) for v in value]
    if not isinstance(value, dict):
        return value
    if value.get("key") in ("host.name", "process.pid"):
        return {"key": value["key"], "value": {"stringValue": "gpu-01"} if value["key"] == "host.name" else {"intValue": "4242"}}
    return {k: base64.b64decode(v).hex() if k in IDS else hexadecimal(v) for k, v in value.items()}


def module(checkout, name):
    """Returns a module of megatron/core/telemetry, which needs no other part of Megatron-LM."""
    spec = importlib.util.spec_from_file_location(name, checkout / "megatron" / "core" / "telemetry" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def resource():
    """Returns what build_telemetry_resource_attrs of megatron/training/global_vars.py adds."""
    return {
        "dl.local_rank": 7, "dl.tensor_parallel.size": 2, "dl.pipeline_parallel.size": 1, "dl.data_parallel.size": 4,
        "dl.batch_size": BATCH, "dl.sequence_length": SEQUENCE, "megatron.num_layers": 32, "megatron.hidden_size": 4096,
        "megatron.num_attention_heads": 32, "megatron.train_iters": 1000, "megatron.micro_batch_size": 2,
        "megatron.ckpt_format": "torch_dist", "megatron.precision": "bf16", "dl.gpu.index": 7, "dl.gpu.name": "NVIDIA H100 80GB HBM3",
        "dl.gpu.uuid": "GPU-6a1b0c9e-0000-4000-8000-000000000007",
    }


def newer_resource():
    return {
        "nv.dl.rank": 7, "nv.dl.world_size": 8, "nv.dl.local_rank": 7, "nv.dl.role": "trainer", "nv.dl.provider.name": "mcore",
        "nv.dl.run.uuid": "0d5f6b8e-0000-4000-8000-000000000001", "nv.dl.topology.size.tp": 2, "nv.dl.topology.size.pp": 1,
        "nv.dl.topology.size.dp": 4, "nv.dl.training.config.global_batch_size": BATCH, "nv.dl.training.config.micro_batch_size": 2,
        "nv.dl.training.config.sequence_length": SEQUENCE, "nv.dl.training.config.optimizer": "adam",
        "nv.gpu.index": 7, "nv.gpu.uuid": "GPU-6a1b0c9e-0000-4000-8000-000000000007",
    }


def remove_older(request):
    """Removes the attributes that this version of Lens adds and a newer one does not."""
    for one in request.get("resourceSpans", []) + request.get("resourceMetrics", []):
        attributes = one["resource"]["attributes"]
        attributes[:] = [a for a in attributes if not a["key"].startswith(("dl.", "nemo."))]


def flush():
    """Exports the metrics between two logs, as with a log interval of minutes."""
    from opentelemetry import metrics

    metrics.get_meter_provider().force_flush()


def train(handle, checkout, steps):
    """The spans and metrics of megatron/training/training.py."""
    from nemo.lens.helpers import managed_span, span_cm

    record = module(checkout, "training_metrics").record_training_metrics
    with managed_span("job", "megatron.startup", **{"megatron.model_type": "ModelType.encoder_or_decoder"}):
        with managed_span("job", "megatron.startup.dataloader"):
            time.sleep(STEP)
        with managed_span("load_checkpoint", "megatron.checkpoint.load"):
            time.sleep(STEP)
    begun = time.time()
    with managed_span("job", "megatron.train"):
        for iteration in range(steps):
            with managed_span("step", "megatron.train.iteration", **{"megatron.iteration": iteration, "megatron.skipped": False}):
                with managed_span("forward_backward", "megatron.train.iteration.forward_backward", num_microbatches=4):
                    time.sleep(0.75 * STEP)
                with managed_span("optimizer", "megatron.train.iteration.optimizer"):
                    time.sleep(0.25 * STEP)
            if (iteration + 1) % LOG_INTERVAL == 0:
                each = (time.time() - begun) / LOG_INTERVAL
                record(handle.meter, step_duration_ms=each * 1000, loss=4.0 - 0.1 * iteration, grad_norm=1.5,
                       learning_rate=1e-4, skipped_iters=0, tokens_per_sec=BATCH * SEQUENCE / each)
                flush()
                begun = time.time()
        with managed_span("checkpoint", "megatron.checkpoint.exposed_save", **{"megatron.iteration": steps}):
            with managed_span("checkpoint", "megatron.checkpoint.save", **{"megatron.iteration": steps}):
                time.sleep(STEP)
        with managed_span("evaluate", "megatron.evaluate", **{"megatron.eval_iters": 2}):
            time.sleep(STEP)


def train_newer(handle, steps):
    """The spans, events and metrics that the newer documents of Megatron-LM name."""
    from opentelemetry.context import Context

    tokens = handle.meter.create_counter("nv.dl.training.tokens.processed", unit="{token}")
    for step in range(1, steps + 1):
        with handle.tracer.start_as_current_span(
                "nv.dl.training.iter_block", context=Context(), attributes={"nv.dl.training.step": step}) as block:
            time.sleep(STEP)
            tokens.add(BATCH * SEQUENCE)
            if step % LOG_INTERVAL == 0:
                flush()
                block.add_event("nv.dl.training.objective", {
                    "nv.dl.training.step": step, "nv.dl.training.objective.name": "lm loss",
                    "nv.dl.training.objective.value": 4.0 - 0.1 * step, "nv.dl.measurement.domain": "dp_mean"})
                block.add_event("nv.dl.training.objective", {
                    "nv.dl.training.step": step, "nv.dl.training.objective.name": "aux loss",
                    "nv.dl.training.objective.value": 0.01, "nv.dl.measurement.domain": "dp_mean"})
                block.add_event("nv.dl.training.numerics", {
                    "nv.dl.training.step": step, "nv.dl.training.learning_rate": 1e-4, "nv.dl.training.global_batch_size": BATCH})
            if step == steps:
                with handle.tracer.start_as_current_span(
                        "nv.dl.training.checkpoint.exposed_save", attributes={"nv.dl.training.step": step}):
                    time.sleep(STEP)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megatron", type=pathlib.Path, required=True)
    parser.add_argument("kind", choices=("default", "per_step", "newer"))
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update({
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "60000", "OTEL_BSP_SCHEDULE_DELAY": "300",
        "MEGATRON_OTEL_ENABLED": "1", "MEGATRON_OTEL_RUN_ID": "llama-3-8b", "NEMO_LENS_USER_ID": "kim",
        "MEGATRON_OTEL_SPAN_GROUPS": "per_step" if options.kind == "per_step" else "default",
    })
    from nemo.lens import NemoLensConfig, setup_telemetry

    groups = module(options.megatron, "span_groups").MegatronSpanGroup
    config = NemoLensConfig.from_env(prefix="MEGATRON_OTEL", fallback_prefix="NEMO_LENS", span_group_cls=groups)
    config.service_name = "megatron-lm"
    handle = setup_telemetry(config, rank=7, world_size=8, resource_attributes=newer_resource() if options.kind == "newer" else resource())
    if options.kind == "newer":
        train_newer(handle, 22)
    else:
        train(handle, options.megatron, 20)
    handle.shutdown()
    options.folder.mkdir(parents=True, exist_ok=True)
    with open(options.folder / "recording.jsonl", "w") as out:
        for request in sorted(server.requests, key=lambda r: r["at"]):
            if options.kind == "newer":
                remove_older(request["request"])
            out.write(json.dumps(request) + "\n")


if __name__ == "__main__":
    sys.exit(main())
