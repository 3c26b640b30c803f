"""The tools of a worker, and how a call gets into its span.

`call` runs any function of any module, as Snakepit's library wrappers do. What
they send to describe a call goes into the span as it is: with it, a collector
can write a program that repeats the call.
"""

import hashlib
import importlib
import json

from opentelemetry import trace


def describe_call(span, call):
    """Puts the call into the span, before it is made."""
    text = json.dumps(call)
    span.set_attributes({
        "repro.payload": text,
        "repro.payload.size": len(text),
        "repro.payload.sha256": hashlib.sha256(text.encode()).hexdigest(),
    })


def call(parameters):
    """Runs a function."""
    describe_call(trace.get_current_span(), parameters)
    module = importlib.import_module(parameters["python_module"])
    function = getattr(module, parameters["function"])
    return str(function(*parameters["args"], **parameters["kwargs"]))


def reported_call(parameters):
    """Runs a function and lets the span say if it failed.

    Under Snakepit's process server nobody else does: it answers that the call
    failed, and the span looks like one that went well.
    """
    span = trace.get_current_span()
    try:
        return call(parameters)
    except Exception as error:
        span.record_exception(error)
        span.set_status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}")
        raise


def count(parameters):
    """Streams the numbers below a limit."""
    yield from range(parameters["limit"])


TOOLS = {"call": call, "reported_call": reported_call, "count": count}
