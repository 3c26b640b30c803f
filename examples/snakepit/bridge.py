"""A worker as Snakepit starts them: a gRPC server in Python, and its tracing.

The names of spans, attributes, resources and headers, and what is and is not
caught inside a span, follow Snakepit 0.13.0. The service is described in code
and speaks JSON, so that no protocol file is needed.

Snakepit has two servers. They differ in where they catch what a tool raises:

    process  inside the span: the span does not say that the call failed
    thread   outside the span: the span is an error and has the exception
"""

import argparse
import asyncio
import contextlib
import contextvars
import json
import os
import sys
import threading
import traceback
import uuid

import grpc
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from tools import TOOLS

SERVICE = "snakepit.python.bridge"
CORRELATION_HEADER = "x-snakepit-correlation-id"
GRPC_SERVICE = "snakepit.BridgeService"

correlation_id = contextvars.ContextVar("correlation_id", default=None)


class Exporter(OTLPSpanExporter):
    """Notes what could not be sent. The SDK only logs it."""

    failed = False

    def export(self, spans):
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            Exporter.failed = True
        return result


def set_up_tracing():
    """SNAKEPIT_OTEL_ENDPOINT is used as it is given, so it has to end in
    /v1/traces. The SDK sends what is in memory when the interpreter ends."""
    provider = TracerProvider(resource=Resource.create({
        "service.name": os.environ.get("SNAKEPIT_SERVICE_NAME", SERVICE),
        "service.namespace": "snakepit",
        "service.instance.id": os.environ.get("SNAKEPIT_INSTANCE_ID", uuid.uuid4().hex),
    }))
    provider.add_span_processor(BatchSpanProcessor(Exporter(endpoint=os.environ["SNAKEPIT_OTEL_ENDPOINT"])))
    trace.set_tracer_provider(provider)
    return trace.get_tracer("snakepit.bridge")


class Bridge:
    """The methods of the service."""

    def __init__(self, server):
        self._catches_inside = server == "process"
        self._tracer = set_up_tracing()
        self._requests = 0
        self._heartbeats = None

    @contextlib.contextmanager
    def _span(self, name, metadata, **attributes):
        """A span that knows nothing of the caller's trace. All that ties them
        is the correlation id from the header; without one it gets a new id."""
        header = dict(metadata or ()).get(CORRELATION_HEADER)
        token = correlation_id.set(header or correlation_id.get() or uuid.uuid4().hex)
        try:
            with self._tracer.start_as_current_span(name) as span:
                span.set_attributes({f"snakepit.{key}": value for key, value in attributes.items()})
                span.set_attribute("snakepit.correlation_id", correlation_id.get())
                yield span
        finally:
            correlation_id.reset(token)

    def _execution_attributes(self, request):
        attributes = {"session_id": request["session_id"], "tool": request["tool_name"]}
        if not self._catches_inside:
            self._requests += 1
            attributes |= {"thread": threading.current_thread().name, "request_id": self._requests}
        return attributes

    async def ping(self, request, context):
        with contextlib.ExitStack() as stack:
            # The process server has no span here.
            if not self._catches_inside:
                thread = threading.current_thread().name
                stack.enter_context(self._span("BridgeService/Ping", context.invocation_metadata(), thread=thread))
            return {"message": "Pong from Python: " + request["message"]}

    async def initialize_session(self, request, context):
        with self._of_session("InitializeSession", request, context):
            # The process server pings its caller from now on. A task inherits
            # what is current where it is made: the span that is about to end,
            # and its correlation id.
            if self._catches_inside:
                self._heartbeats = asyncio.create_task(self._send_ping(request["session_id"]))
            return {}

    async def get_session(self, request, context):
        with self._of_session("GetSession", request, context):
            return {}

    async def heartbeat(self, request, context):
        with self._of_session("Heartbeat", request, context):
            return {}

    async def cleanup_session(self, request, context):
        with self._of_session("CleanupSession", request, context):
            if self._heartbeats:
                await self._heartbeats
            return {}

    def _of_session(self, name, request, context):
        return self._span("BridgeService/" + name, context.invocation_metadata(), session_id=request["session_id"])

    async def _send_ping(self, session_id):
        """One ping; the real worker goes on until the session ends."""
        with self._span("HeartbeatClient/SendPing", None, session_id=session_id):
            pass

    async def execute_tool(self, request, context):
        attributes = self._execution_attributes(request)
        response = {}
        try:
            with self._span("BridgeService/ExecuteTool", context.invocation_metadata(), **attributes) as span:
                response = span_ids(span)
                tool = TOOLS[request["tool_name"]]
                if not self._catches_inside:
                    return response | {"success": True, "result": tool(request["parameters"])}
                try:
                    return response | {"success": True, "result": await asyncio.to_thread(tool, request["parameters"])}
                except Exception as error:
                    return response | failure(error)
        except Exception as error:
            return response | failure(error)

    async def execute_streaming_tool(self, request, context):
        attributes = self._execution_attributes(request)
        with self._span("BridgeService/ExecuteStreamingTool", context.invocation_metadata(), **attributes):
            for chunk in TOOLS[request["tool_name"]](request["parameters"]):
                yield {"chunk": chunk}


def span_ids(span):
    """Not part of Snakepit: lets the caller know the span's ids."""
    context = span.get_span_context()
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


def failure(error):
    """What the caller is told of an exception."""
    return {
        "success": False,
        "error": {
            "type": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        },
    }


def encode(message):
    return json.dumps(message).encode()


def handlers(bridge):
    def unary(method):
        return grpc.unary_unary_rpc_method_handler(method, json.loads, encode)

    return grpc.method_handlers_generic_handler(GRPC_SERVICE, {
        "Ping": unary(bridge.ping),
        "InitializeSession": unary(bridge.initialize_session),
        "GetSession": unary(bridge.get_session),
        "Heartbeat": unary(bridge.heartbeat),
        "CleanupSession": unary(bridge.cleanup_session),
        "ExecuteTool": unary(bridge.execute_tool),
        "ExecuteStreamingTool": grpc.unary_stream_rpc_method_handler(
            bridge.execute_streaming_tool, json.loads, encode
        ),
    })


async def serve(server_kind):
    """Serves on a free port, which it prints, until its input ends."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handlers(Bridge(server_kind)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(grace=5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A worker of Snakepit.")
    parser.add_argument("--server", required=True, choices=("process", "thread"))
    asyncio.run(serve(parser.parse_args().server))
    # Before the interpreter ends, to know whether it went well.
    trace.get_tracer_provider().shutdown()
    if Exporter.failed:
        sys.exit("not all telemetry was sent")
