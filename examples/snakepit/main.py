"""Calls Python functions through workers as Snakepit does, and has some fail.

Two workers run, one for each of Snakepit's two servers. What was called goes
into the truth file, to compare with what a collector made of the telemetry.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import time
from importlib.metadata import version

import grpc

import bridge
import node

PACKAGES = ["grpcio", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
FOLDER = pathlib.Path(__file__).parent


def described(module, function, *args, call_type="function"):
    """How Snakepit's library wrappers describe a call."""
    return {
        "protocol_version": 1,
        "min_supported_version": 1,
        "library": module.partition(".")[0],
        "python_module": module,
        "function": function,
        "args": list(args),
        "kwargs": {},
        "idempotent": True,
        "call_type": call_type,
    }


class Worker:
    """A worker in a process of its own."""

    def __init__(self, server, endpoint):
        self.id = f"default_worker_1_{server}"
        # The tracing of the bridge takes its endpoint as it is.
        environment = os.environ | {"SNAKEPIT_OTEL_ENDPOINT": endpoint + "/v1/traces"}
        self._process = subprocess.Popen(
            [sys.executable, FOLDER / "bridge.py", "--server", server],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        port = self._process.stdout.readline().strip()
        if not port:
            sys.exit(f"the worker with the {server} server did not start")
        self._channel = grpc.insecure_channel("127.0.0.1:" + port)

    def send(self, method, message, correlation=None):
        path = f"/{bridge.GRPC_SERVICE}/{method}"
        metadata = [(bridge.CORRELATION_HEADER, correlation)] if correlation else []
        if method == "ExecuteStreamingTool":
            stream = self._channel.unary_stream(path, bridge.encode, json.loads)
            return list(stream(message, metadata=metadata))
        return self._channel.unary_unary(path, bridge.encode, json.loads)(message, metadata=metadata)

    def close(self):
        """Ends the worker, which sends its last spans as it ends."""
        self._channel.close()
        self._process.stdin.close()
        if self._process.wait(timeout=30) != 0:
            sys.exit(f"{self.id} ended with {self._process.returncode}")


class Session:
    """Calls workers, and keeps what it did."""

    def __init__(self):
        self.node = node.Node(f"session_1_{time.time_ns() // 1000}")
        self.spans = collections.Counter()
        self.correlations = []
        self.errors = []
        self.silent = []

    def send(self, worker, method):
        """Sends what is about the session itself. Nothing makes an Elixir span
        of it, and it has no correlation id."""
        worker.send(method, {"session_id": self.node.session_id, "message": "hello"})
        self.spans["BridgeService/" + method] += 1

    def stream(self, worker, tool, parameters):
        """Streaming calls have no Elixir span either, but a correlation id."""
        request, correlation = self._request(tool, parameters)
        worker.send("ExecuteStreamingTool", request, correlation)
        self.spans["BridgeService/ExecuteStreamingTool"] += 1

    def execute(self, worker, tool, parameters, bound=False):
        """Calls a tool, bound to the session or not, and returns the answer."""
        request, correlation = self._request(tool, parameters)
        spans = self.node.execute_session if bound else self.node.execute
        with spans(worker.id, tool, correlation) as call:
            call.answer = worker.send("ExecuteTool", request, correlation)
        if bound:
            self.spans["snakepit.grpc.execute-session." + tool] += 1
        else:
            self.spans["snakepit.grpc." + tool] += 1
            self.spans["snakepit.grpc.execute." + tool] += 1
        self.spans["BridgeService/ExecuteTool"] += 1
        return call.answer

    def _request(self, tool, parameters):
        correlation = node.new_correlation_id()
        self.correlations.append(correlation)
        return {"session_id": self.node.session_id, "tool_name": tool, "parameters": parameters}, correlation

    def fail(self, worker, tool, parameters, silent=False):
        """Makes a call that raises. A silent one leaves a span in Python that
        does not say so."""
        answer = self.execute(worker, tool, parameters)
        if answer["success"]:
            sys.exit(f"{parameters['python_module']}.{parameters['function']} did not fail")
        report = {key: answer["error"][key] for key in ("type", "message")}
        report |= {"trace_id": answer["trace_id"], "span_id": answer["span_id"], "payload": True}
        (self.silent if silent else self.errors).append(report)


def work(session, thread, process, steps, chance):
    session.send(thread, "InitializeSession")
    session.send(process, "InitializeSession")
    session.spans["HeartbeatClient/SendPing"] += 1  # the process server's own
    session.send(thread, "Ping")
    session.send(process, "GetSession")
    session.send(process, "Heartbeat")
    for step in range(steps):
        numbers = [chance.randint(1, 100) for _ in range(5)]
        session.execute(thread, "call", described("statistics", "mean", numbers))
        session.execute(process, "call", described("json", "dumps", numbers), bound=step % 2 == 1)
    session.stream(thread, "count", {"limit": 3})
    # The exception leaves the span of the thread server on its own …
    session.fail(thread, "call", described("statistics", "mean", []))
    # … the process server keeps it back …
    session.fail(process, "call", described("json", "loads", '{"model": gpt2}'), silent=True)
    # … unless the tool reports it.
    session.fail(process, "reported_call", described("datetime", "date", 2026, 2, 30, call_type="class"))
    for worker in (thread, process):
        session.send(worker, "CleanupSession")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", help="file for what was done")
    parser.add_argument("--steps", type=int, default=4, help="successful calls of each worker")
    parser.add_argument("--seed", type=int, default=1, help="decides what is called with")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be at least 2, so that there is a call of every kind")
    endpoint = os.environ.setdefault("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318").rstrip("/")

    session = Session()
    thread, process = Worker("thread", endpoint), Worker("process", endpoint)
    try:
        work(session, thread, process, options.steps, random.Random(options.seed))
    finally:
        thread.close()
        process.close()
    if not session.node.close():
        sys.exit("not all telemetry was sent")

    truth = {
        "system": "snakepit",
        "versions": {package: version(package) for package in PACKAGES},
        "services": [bridge.SERVICE, node.SERVICE],
        "spans": session.spans,
        "keys": {"session": [session.node.session_id], "request": session.correlations},
        "errors": session.errors,
        "numbers": {"python failures": len(session.errors) + len(session.silent)},
        "notes": [
            "The Elixir side is a stand-in in Python; so is the bridge, after Snakepit 0.13.0.",
            "Snakepit itself does not send repro.payload; tools.py adds it.",
        ] + [f"{e['type']} of span {e['span_id']} was kept back by the process server" for e in session.silent],
    }
    if options.truth:
        pathlib.Path(options.truth).write_text(json.dumps(truth, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
