"""A stand-in for the Elixir side of Snakepit.

It makes the spans that Snakepit 0.13.0's instrumentation of its gRPC workers
makes, with the Python SDK: there is no Erlang virtual machine here. Names,
attributes, status and nesting are Snakepit's; `telemetry.sdk.language` is not.
"""

import contextlib
import os
import secrets
import time

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from bridge import Exporter

SERVICE = "snakepit"
TIMEOUT_MS = 30_000


def new_correlation_id():
    return "sp-" + secrets.token_hex(12)


class Node:
    """Makes spans around calls to a worker."""

    def __init__(self, session_id):
        self.session_id = session_id
        self._provider = TracerProvider(resource=Resource.create({"service.name": SERVICE, "service.namespace": "snakepit"}))
        self._provider.add_span_processor(BatchSpanProcessor(Exporter()))
        # The outer span comes from a handler of telemetry events, which has a
        # tracer of its own.
        self._events = self._provider.get_tracer("snakepit_grpc_worker")
        self._tracer = self._provider.get_tracer("snakepit", "0.13.0")

    def close(self):
        """Sends what is in memory, and says whether that worked."""
        self._provider.shutdown()
        return not Exporter.failed

    def _attributes(self, worker, command, correlation):
        return {
            "snakepit.worker.id": worker,
            "snakepit.pool": "default",
            "snakepit.command": command,
            "snakepit.session_id": self.session_id,
            "snakepit.correlation_id": correlation,
        }

    @contextlib.contextmanager
    def execute(self, worker, command, correlation):
        """The two spans of a plain call. `answer` of what is yielded is what
        the worker said."""
        start = self._attributes(worker, command, correlation)
        outer = self._events.start_span(
            "snakepit.grpc." + command,
            kind=SpanKind.CLIENT,
            attributes=start | {"snakepit.worker.pid": f"#PID<0.{os.getpid()}.0>", "snakepit.telemetry.operation": "execute"},
        )
        with trace.use_span(outer, end_on_exit=True):
            with self._call("snakepit.grpc.execute." + command, start) as call:
                yield call
            outer.set_attributes(call.result() | {"snakepit.grpc.executions": 1})
            if call.reason:
                outer.set_attribute("snakepit.grpc.errors", 1)
                outer.set_status(StatusCode.ERROR, call.reason)
            outer.add_event("snakepit.grpc.duration", {"duration": call.milliseconds})

    @contextlib.contextmanager
    def execute_session(self, worker, command, correlation):
        """The one span of a call that is bound to a session: the handler does
        not listen to these."""
        start = self._attributes(worker, command, correlation)
        with self._call("snakepit.grpc.execute-session." + command, start) as call:
            yield call

    @contextlib.contextmanager
    def _call(self, name, start):
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.CLIENT, attributes=start | {"snakepit.timeout_ms": TIMEOUT_MS}
        ) as span:
            call = Call()
            yield call
            call.end()
            span.set_attributes(call.result())
            if call.reason:
                span.set_status(StatusCode.ERROR, call.reason)


class Call:
    """One call to a worker, while it is on its way."""

    def __init__(self):
        self._started = time.monotonic()
        self.answer = {}
        self.milliseconds = 0

    def end(self):
        self.milliseconds = int((time.monotonic() - self._started) * 1000)

    @property
    def reason(self):
        """How Elixir prints the exception that it makes of a Python one. The
        kind of error is in it, and in no attribute."""
        error = self.answer.get("error")
        if not error:
            return None
        # Most types have no counterpart in Elixir.
        module = error["type"] if error["type"] == "ValueError" else "PythonException"
        return f'%Snakepit.Error.{module}{{message: "{error["message"]}", python_type: "{error["type"]}"}}'

    def result(self):
        result = {
            "snakepit.grpc.duration_ms": self.milliseconds,
            "snakepit.grpc.status": "error" if self.reason else "ok",
        }
        if self.reason:
            result["snakepit.grpc.error"] = self.reason
        return result
