"""Puts a call that failed onto the current span, so that it can be repeated.

The attribute is repro.payload: the call as JSON, in the form that Snakepit
sends. The collector's processor repro_gen makes a program of it.
"""

import hashlib
import json

import torch
from opentelemetry import trace

# What was put onto spans, in order.
failures = []


def reported(function, *args):
    """Call a function; if it raises, put the call onto the current span."""
    try:
        return function(*args)
    except Exception as error:
        call = {
            "protocol_version": 1,
            "min_supported_version": 1,
            "library": function.__module__.split(".")[0],
            "python_module": function.__module__,
            "function": function.__qualname__,
            "args": [plain(argument) for argument in args],
            "kwargs": {},
            "idempotent": True,
            "call_type": "function",
        }
        text = json.dumps(call)
        span = trace.get_current_span()
        span.set_attribute("repro.payload", text)
        span.set_attribute("repro.payload.size", len(text.encode()))
        span.set_attribute("repro.payload.sha256", hashlib.sha256(text.encode()).hexdigest())
        context = span.get_span_context()
        failures.append({
            "type": qualified_name(type(error)),
            "message": str(error),
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
            "payload": True,
        })
        raise


def plain(argument):
    """Return what JSON can say of an argument: a tensor's numbers."""
    return argument.tolist() if isinstance(argument, torch.Tensor) else argument


def qualified_name(kind):
    """Return a class's name as OpenTelemetry's exception.type has it."""
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
