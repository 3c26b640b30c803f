"""One of the ranks of a training on PyTorch's Gloo that hangs.

    RANK=N WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 MASTER_PORT=… rank.py CASE FOLDER ENDPOINT

It sends a span of each step to ENDPOINT, as OTLP in JSON. In the last step, rank 5 does what the
others do not: CASE is skip, order, shape, dies or data. When a step takes too long, each rank
writes its Flight Recorder dump into FOLDER, as PyTorch does on a timeout with NCCL.
"""

import json
import os
import secrets
import sys
import threading
import time
import urllib.request

import torch
import torch.distributed as dist

ODD, STEPS, TOO_LONG = 5, 6, 10
case, folder, endpoint = sys.argv[1:]
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
stepped = time.monotonic()


def watch():
    while time.monotonic() - stepped < TOO_LONG:
        time.sleep(0.5)
    dump = torch._C._distributed_c10d._dump_fr_trace()
    with open(f"{folder}/part_{rank}", "wb") as file:
        file.write(dump)
    os.rename(f"{folder}/part_{rank}", f"{folder}/comm_lib_trace_rank_{rank}")


def text(key, value):
    return {"key": key, "value": {"stringValue": value}}


def send(step):
    now = time.time_ns()
    span = {
        "traceId": secrets.token_hex(16), "spanId": secrets.token_hex(8), "name": "optimizer.step",
        "startTimeUnixNano": str(now - 10**6), "endTimeUnixNano": str(now), "attributes": [text("ml.phase", "optimizer")],
    }
    resource = [text("service.name", "trainer"), text("ml.run.id", os.environ["TORCHELASTIC_RUN_ID"]), text("host.name", "gpu-01")]
    resource.append({"key": "ml.rank.global", "value": {"intValue": rank}})
    body = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": [span]}]}]}
    request = urllib.request.Request(endpoint, json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()


def load_data():
    time.sleep(3600)


def train_step(last):
    tensor = torch.ones(16)
    dist.all_reduce(tensor)
    if not last or rank != ODD:
        dist.all_gather([torch.zeros(16) for _ in range(size)], tensor)
    elif case == "skip":
        dist.barrier()
    elif case == "order":
        dist.broadcast(tensor, ODD)
        dist.barrier()
    elif case == "shape":
        dist.all_gather([torch.zeros(8) for _ in range(size)], torch.ones(8))
    elif case == "dies":
        os._exit(1)
    else:
        load_data()


dist.init_process_group("gloo", rank=rank, world_size=size)
stepped = time.monotonic()
threading.Thread(target=watch, daemon=True).start()
try:
    for step in range(STEPS):
        train_step(last=step == STEPS - 1)
        stepped = time.monotonic()
        send(step)
except RuntimeError as error:
    print(rank, str(error)[:200], flush=True)
time.sleep(3600)
