"""Puts a call that failed onto the current span, so that it can be repeated.

One file, to be copied into an application. It needs the OpenTelemetry API and
nothing else; PyTorch and NumPy are looked at only where an argument is theirs.

    @reported(tensors="stats", env=("OMP_NUM_THREADS",), packages=("torch",))
    def project(batch, weight): ...

or, where a decorator is not wanted:

    except Exception:
        record_call(project, (batch, weight))
        raise

The collector's processor repro_gen makes a program of what is recorded.
"""

import base64
import ctypes
import datetime
import functools
import hashlib
import json
import math
import os
import sys
import zlib
from importlib import metadata

from opentelemetry import trace

# The collector reads no more than 256 KiB of a payload.
MAX_BYTES = 250_000
# A storage above this is described by its statistics, also with tensors="data".
MAX_STORAGE = 128 << 10
MAX_DEPTH = 100
# As JSON, a value in a list takes three bytes or more. More values than this do
# not fit, and a structure that holds itself has no end of them.
MAX_VALUES = MAX_BYTES // 3


def reported(function=None, **how):
    """Decorate a function: where it raises, its call goes onto the current span.

    It takes the keywords of record_call.
    """
    if function is None:
        return functools.partial(reported, **how)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            record_call(function, args, kwargs, **how)
            raise

    return call


def record_call(function, args=(), kwargs=None, *, tensors="stats", env=(), packages=(), seed=None, span=None):
    """Put a call onto a span. Returns whether there was room for it.

    tensors   "data": captured bytes of storages up to 128 KiB, and statistics of
              larger ones; "stats": shapes and statistics; "shape": shapes alone
    env       names of environment variables to send; their values leave the machine
    packages  names of packages whose versions to send
    seed      the seed of the random numbers
    span      the span; by default the current one

    It never raises: an application must not fail for its telemetry.
    """
    try:
        span = span or trace.get_current_span()
        if not span.is_recording():
            return False
        text = None
        for level in {"data": ("data", "stats", "shape"), "stats": ("stats", "shape")}.get(tensors, ("shape",)):
            text = payload(function, args, kwargs or {}, level)
            if len(text) <= MAX_BYTES:
                break
        else:
            return False
        # First of all: an SDK that has no room for more attributes drops later ones.
        span.set_attribute("repro.payload", text)
        span.set_attribute("repro.payload.size", len(text))
        span.set_attribute("repro.payload.sha256", hashlib.sha256(text.encode("ascii")).hexdigest())
        span.set_attribute("repro.schema", 1)
        for name, value in state(env, packages, seed).items():
            span.set_attribute(name, value)
        return True
    except Exception:
        return False


def payload(function, args, kwargs, level="stats"):
    """Return the call as JSON in ASCII, in the form that Snakepit sends."""
    encoder = Encoder(level)
    return json.dumps({
        "protocol_version": 1,
        "min_supported_version": 1,
        "library": function.__module__.split(".")[0],
        "python_module": function.__module__,
        "function": function.__qualname__,
        "args": [encoder.value(a) for a in args],
        "kwargs": {k: encoder.value(v) for k, v in kwargs.items()},
        "call_type": "class" if isinstance(function, type) else "function",
    }, allow_nan=False)


def state(env, packages, seed):
    """Return the attributes that say where the call was made."""
    found = {"repro.env." + name: os.environ[name] for name in env if name in os.environ}
    versions = []
    for name in packages:
        try:
            versions.append("%s==%s" % (name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            pass
    if versions:
        found["repro.packages"] = versions
    if seed is not None:
        found["repro.seed"] = seed
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found["repro.gpu.memory.total"] = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return found


def tagged(name, **members):
    return {"__type__": name, "__schema__": 1, **members}


class Encoder:
    """Writes arguments as JSON with tags, for one call: tensors may share memory."""

    def __init__(self, level):
        self.level = level
        self.storages = {}
        self.left = MAX_VALUES

    def value(self, v, depth=0):
        self.left -= 1
        if self.left < 0:
            raise ValueError("the call has too many values")
        kind = type(v)
        if depth > MAX_DEPTH:
            return unsent(v)
        if v is None or kind in (bool, int, str):
            return v
        if kind is float:
            if math.isnan(v):
                return tagged("special_float", value="nan")
            if math.isinf(v):
                return tagged("special_float", value="infinity" if v > 0 else "neg_infinity")
            return v
        if kind is list:
            return [self.value(e, depth + 1) for e in v]
        if kind in (tuple, set, frozenset):
            return tagged(kind.__name__, elements=[self.value(e, depth + 1) for e in v])
        if kind is dict:
            if all(type(k) is str for k in v) and not any(k.startswith("__") for k in v):
                return {k: self.value(e, depth + 1) for k, e in v.items()}
            return tagged("dict", pairs=[[self.value(k, depth + 1), self.value(e, depth + 1)] for k, e in v.items()])
        if kind in (bytes, bytearray):
            return tagged("bytes", data=base64.b64encode(v).decode("ascii"))
        if kind is complex:
            return tagged("complex", real=self.value(v.real), imag=self.value(v.imag))
        if kind in (datetime.datetime, datetime.date, datetime.time):
            return tagged(kind.__name__, value=v.isoformat())
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        try:
            if torch is not None and isinstance(v, torch.Tensor) and v.layout is torch.strided and not v.is_quantized:
                return self.tensor(torch, v)
            if numpy is not None and kind is numpy.ndarray and v.dtype.kind in "biufc" and v.dtype.isnative:
                return self.array(numpy, v)
            if numpy is not None and isinstance(v, numpy.generic):
                return self.value(v.item(), depth + 1)
        except Exception:  # after a device error, nothing can be read
            pass
        return unsent(v)

    def tensor(self, torch, t):
        t = t.detach() if not t.requires_grad else t
        size = t.element_size()
        tag = tagged(
            "tensor", framework="torch", dtype=str(t.dtype).replace("torch.", ""), shape=list(t.shape), stride=list(t.stride()),
            storage_offset=t.storage_offset(), device=str(t.device), requires_grad=t.requires_grad, data=None)
        storage = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()
        count = storage.nbytes() // size
        known = self.share(tag, (str(t.device), storage.data_ptr()), count)
        with torch.no_grad():
            plain = t.detach()
            if self.level == "data" and not known and count * size <= MAX_STORAGE:
                whole = plain.as_strided((count,), (1,), 0).cpu().contiguous()
                tag["data"] = captured(ctypes.string_at(whole.data_ptr(), count * size))
            elif self.level != "shape" and not known and t.numel():
                wide = plain.cpu()
                wide = wide.float() if wide.is_floating_point() and size < 4 else wide
                if not wide.is_complex():
                    good = wide[torch.isfinite(wide)] if wide.is_floating_point() else wide.double()
                    tag["stats"] = self.stats(
                        good.numel() and (good.min().item(), good.max().item(), good.double().mean().item(),
                                          good.double().std(unbiased=False).item()),
                        int(torch.isnan(wide).sum()), int(torch.isinf(wide).sum()))
        return tag

    def array(self, numpy, a):
        base = a
        while isinstance(base.base, numpy.ndarray):
            base = base.base
        size = a.itemsize
        first, offset = pointer(base), pointer(a) - pointer(base)
        if not base.flags.c_contiguous or offset % size or any(s % size for s in a.strides):
            base = a = numpy.ascontiguousarray(a)
            first, offset = None, 0
        tag = tagged(
            "ndarray", framework="numpy", dtype=a.dtype.name, shape=list(a.shape), stride=[s // size for s in a.strides],
            storage_offset=offset // size, data=None)
        known = first is not None and self.share(tag, ("cpu", first), base.nbytes // size)
        if self.level == "data" and not known and base.nbytes <= MAX_STORAGE:
            tag["data"] = captured(base.tobytes())
        elif self.level != "shape" and not known and a.size and a.dtype.kind != "c":
            good = a[numpy.isfinite(a)]
            tag["stats"] = self.stats(
                good.size and (good.min().item(), good.max().item(), float(good.mean(dtype="float64")), float(good.std(dtype="float64"))),
                int(numpy.isnan(a).sum()) if a.dtype.kind == "f" else 0, int(numpy.isinf(a).sum()) if a.dtype.kind == "f" else 0)
        return tag

    def share(self, tag, where, count):
        """Name the storage, and say whether it was named before."""
        if not count:
            return False
        known = where in self.storages
        tag["storage"] = self.storages.setdefault(where, "s%d" % len(self.storages))
        return known

    def stats(self, four, nan, inf):
        stats = {"nan": nan, "inf": inf}
        if four:
            stats.update(zip(("min", "max", "mean", "std"), (self.value(v if type(v) is not bool else int(v)) for v in four)))
        return stats


def pointer(array):
    return array.__array_interface__["data"][0]


def captured(data):
    """The bytes in base64, packed where that is shorter."""
    packed = zlib.compress(data)
    if len(packed) < len(data):
        return {"zlib": base64.b64encode(packed).decode("ascii")}
    return {"b64": base64.b64encode(data).decode("ascii")}


def unsent(value):
    """What stands for an object that is not sent: its class, and nothing of it."""
    return {"__ffi_unserializable__": True, "type": "%s.%s" % (type(value).__module__, type(value).__qualname__)}
