"""A training program of the forecasting toolkit, in one of its ways of tracing.

numbered: the multi-task loop. It starts spans without making them current, so
each epoch_<n>, batch_<n> and validation_<n> is the root of a trace of its own,
and log records have no trace. The tracer has no resource: the service is
unknown_service:python, unless OTEL_SERVICE_NAME is set.

documented: the names and attributes of the toolkit's documents, each span again
a trace of its own.

nested: the same with spans that are current, as the documents use them. Batches
and the validation are children of their training_epoch, and log records have
the trace that they were written in.
"""

import argparse
import collections
import contextlib
import json
import logging
import os
import pathlib
import sys

import torch
from model import BATCH, Forecaster, WINDOW, evaluate, losses, rates
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.logging import LoggingInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

EPOCHS = 2
log = logging.getLogger("fx.training")


class ExportErrors(logging.Handler):
    """Remembers whether OpenTelemetry could not send something: it only logs."""

    def __init__(self):
        super().__init__(level=logging.ERROR)
        self.seen = False

    def emit(self, record):
        self.seen = True


class Records(logging.Handler):
    """Counts the records that reach the root logger, OpenTelemetry's own too."""

    count = 0

    def emit(self, record):
        self.count += 1


class Account:
    """What the program did, counted where it does it."""

    def __init__(self, provider):
        self.service = provider.resource.attributes["service.name"]
        self.spans = collections.Counter()
        self.batches = 0
        self.losses = {}
        self.errors = []

    def loss(self, scope, task, value):
        """Note the latest value of a loss."""
        self.losses[scope, task] = value

    def write(self, file, logs):
        file.write_text(json.dumps({
            "service": self.service,
            "spans": self.spans,
            "batches": self.batches,
            "logs": logs,
            "losses": [
                {"service": self.service, "scope": scope, "task": task, "value": value}
                for (scope, task), value in self.losses.items()
            ],
            "errors": self.errors,
        }))


def set_up(endpoint, as_given):
    """Connect tracing and logging to a collector.

    The toolkit hands its endpoint to the exporter, which then posts to that URL
    as it is: without a path, to "/".
    """
    tracing = TracerProvider()
    tracing.add_span_processor(BatchSpanProcessor(
        OTLPSpanExporter(endpoint=endpoint if as_given else endpoint + "/v1/traces", timeout=10)))
    trace.set_tracer_provider(tracing)

    # The toolkit stops here: its log records stay in the process. This is what
    # it takes to send them.
    logs = LoggerProvider(resource=tracing.resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=endpoint + "/v1/logs", timeout=10)))
    set_logger_provider(logs)
    LoggingInstrumentor().instrument(inject_trace_context=True)
    logging.getLogger().setLevel(logging.INFO)
    return tracing, logs


def learn(model, optimizer, windows, targets):
    """Train on one batch; return the loss and that of each task."""
    per_task = losses(model(windows), targets)
    loss = sum(per_task.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), {task: value.item() for task, value in per_task.items()}


def numbered(tracer, model, optimizer, options, did):
    for epoch in range(1, EPOCHS + 1):
        span = tracer.start_span(f"epoch_{epoch}")
        span.set_attribute("epoch", epoch)
        running = 0.0
        for step in range(1, options.steps + 1):
            batch_span = tracer.start_span(f"batch_{step}")
            batch_span.set_attribute("step", step)
            loss, per_task = learn(model, optimizer, *rates(BATCH, options.seed + 1000 * epoch + step))
            running += loss
            batch_span.set_attribute("loss", loss)
            did.loss("batch", "", loss)
            for task, value in per_task.items():
                batch_span.set_attribute(f"task.{task}", value)
                did.loss("batch", task, value)
            # One attribute a step: a long epoch has more than a span may have,
            # and the oldest is lost, which is the epoch's number.
            span.set_attribute(f"loss_at_step_{step}", running / step)
            batch_span.end()
            did.batches += 1
            did.spans[f"batch_{step}"] += 1
        metrics = evaluate(model, options.seed)
        # It starts when the evaluation is over.
        validation = tracer.start_span(f"validation_{epoch}")
        validation.set_attribute("epoch", epoch)
        for name, value in metrics.items():
            validation.set_attribute(f"val.{name}", value)
        span.set_attribute("train_loss", running / options.steps)
        span.set_attribute("val_loss", metrics["loss"])
        for name, value in metrics.items():
            span.set_attribute(f"val.{name}", value)
        validation.end()
        log.info("epoch %d/%d train_loss %.4f val_loss %.4f", epoch, EPOCHS, running / options.steps, metrics["loss"])
        span.end()
        did.loss("epoch", "", running / options.steps)
        did.loss("validation", "", metrics["loss"])
        did.spans[f"validation_{epoch}"] += 1
        did.spans[f"epoch_{epoch}"] += 1


@contextlib.contextmanager
def traced(tracer, name, nested, attributes):
    """Trace a block, as the current span or as one that nothing belongs to."""
    if nested:
        with tracer.start_as_current_span(name, attributes=attributes) as span:
            yield span
        return
    span = tracer.start_span(name, attributes=attributes)
    try:
        yield span
    finally:
        span.end()


def documented(tracer, model, optimizer, options, did, nested=False):
    with traced(tracer, "data_loading", nested, {"pair": "gbpusd", "num_samples": BATCH}):
        log.info("loading gbpusd")
    with traced(tracer, "feature_engineering", nested, {"pair": "gbpusd", "feature_count": WINDOW}):
        log.info("computing %d features", WINDOW)
    did.spans.update(("data_loading", "feature_engineering"))

    for epoch in range(1, EPOCHS + 1):
        with traced(tracer, "training_epoch", nested, {"epoch": epoch, "total_epochs": EPOCHS}) as span:
            running = 0.0
            for index in range(options.steps):
                attributes = {"batch_index": index, "batch_size": BATCH}
                with traced(tracer, "batch_processing", nested, attributes) as batch_span:
                    loss, per_task = learn(model, optimizer, *rates(BATCH, options.seed + 1000 * epoch + index))
                    running += loss
                    batch_span.set_attribute("loss", loss)
                    did.loss("batch", "", loss)
                    for task, value in per_task.items():
                        batch_span.set_attribute(f"task.{task}", value)
                        did.loss("batch", task, value)
                did.batches += 1
                did.spans["batch_processing"] += 1
            if nested and epoch == EPOCHS:
                skip_broken(tracer, model, options.steps, did)
            metrics = evaluate(model, options.seed)
            attributes = {"epoch": epoch, "val_loss": metrics["loss"], "val_metric": metrics["dir_acc"]}
            with traced(tracer, "validation", nested, attributes) as validation:
                validation.set_attribute("val.ret_rmse", metrics["ret_rmse"])
            span.set_attribute("train_loss", running / options.steps)
            span.set_attribute("val_loss", metrics["loss"])
            span.set_attribute("val_metric", metrics["dir_acc"])
            log.info("epoch %d/%d train_loss %.4f", epoch, EPOCHS, running / options.steps)
        did.loss("epoch", "", running / options.steps)
        did.loss("validation", "", metrics["loss"])
        did.spans.update(("validation", "training_epoch"))


def nested(*arguments):
    documented(*arguments, nested=True)


def skip_broken(tracer, model, index, did):
    """Meet a batch of another window, report it as the toolkit does, go on."""
    did.spans["batch_processing"] += 1
    try:
        with traced(tracer, "batch_processing", True, {"batch_index": index, "batch_size": BATCH}) as span:
            try:
                model(torch.zeros(BATCH, WINDOW - 1))
            except RuntimeError as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_attribute("error.message", str(error))
                raise
    except RuntimeError as error:
        context = span.get_span_context()
        did.errors.append({
            "type": type(error).__name__,
            "message": str(error),
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
            "payload": False,
        })
        log.exception("a batch was left out")


LOOPS = {"numbered": numbered, "documented": documented, "nested": nested}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tracing", choices=LOOPS, required=True)
    parser.add_argument("--steps", type=int, required=True, help="batches of an epoch")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--url-as-given", action="store_true")
    parser.add_argument("--truth", type=pathlib.Path, required=True)
    options = parser.parse_args()

    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318").rstrip("/")
    export_errors = ExportErrors()
    for name in ("opentelemetry.exporter", "opentelemetry.sdk"):
        logging.getLogger(name).addHandler(export_errors)
    tracing, logs = set_up(endpoint, options.url_as_given)
    records = Records()
    logging.getLogger().addHandler(records)
    did = Account(tracing)

    torch.manual_seed(options.seed)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    LOOPS[options.tracing](trace.get_tracer("train.core.agent_train_multitask"), model, optimizer, options, did)

    tracing.shutdown()
    logs.shutdown()
    did.write(options.truth, records.count)
    sys.exit(1 if export_errors.seen else 0)


if __name__ == "__main__":
    main()
