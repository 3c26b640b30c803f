"""Records what TorchTel traces of training loops with other optimizers than one.

    python record.py {lbfgs,two,turns,accumulate} FILE

It runs in the environment of examples/torchtel and writes one OTLP request a
line, as OTLP/JSON. Each loop has four steps. The names of this machine and of its
user are replaced.
"""

import base64
import gzip
import http.server
import json
import os
import sys
import threading

STEPS = 4
REPLACED = {"user": "user", "host": "host-1", "cluster": "local-node"}
requests = []


class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/traces"):
            requests.append(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def listen():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


# TorchTel reads it when it is imported.
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = listen()
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")

import torch  # noqa: E402

if not hasattr(torch.optim, "__all__"):
    # Without it TorchTel patches no optimizer.
    torch.optim.__all__ = [name for name, value in vars(torch.optim).items() if isinstance(value, type)]

from google.protobuf.json_format import MessageToDict  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402
from torchtel import PyTorchInstrumentor, setup_opentelemetry  # noqa: E402


class Regressor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def forward(self, batch):
        return self.net(batch)


def train(model, kind):
    inputs, targets = torch.randn(8, 4), torch.randn(8, 1)
    weight, bias = model.parameters()

    def backward():
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        return loss

    if kind == "lbfgs":
        optimizer = torch.optim.LBFGS([weight, bias], max_iter=3)

        def closure():
            optimizer.zero_grad()
            return backward()

        for _ in range(STEPS):
            optimizer.step(closure)
        return
    if kind == "accumulate":
        optimizer = torch.optim.AdamW([weight, bias])
        for _ in range(STEPS):
            for _ in range(3):
                backward()
            optimizer.step()
        return
    first, second = torch.optim.SGD([weight], lr=0.01), torch.optim.AdamW([bias])
    for step in range(STEPS):
        backward()
        if kind == "two" or step % 2 == 0:
            first.step()
        if kind == "two" or step % 2 == 1:
            second.step()


def otlp(body):
    request = MessageToDict(ExportTraceServiceRequest.FromString(body), use_integers_for_enums=True)
    for resource in request["resourceSpans"]:
        for attribute in resource["resource"]["attributes"]:
            if attribute["key"] in REPLACED:
                attribute["value"] = {"stringValue": REPLACED[attribute["key"]]}
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[key] = base64.b64decode(span[key]).hex()
    return json.dumps(request, separators=(",", ":"))


def main():
    kind, file = sys.argv[1:]
    tracer_provider, meter_provider = setup_opentelemetry()
    model = Regressor()
    instrumentor = PyTorchInstrumentor().instrument(model=model)
    train(model, kind)
    instrumentor.uninstrument()
    tracer_provider.shutdown()
    meter_provider.shutdown()
    with open(file, "w", encoding="utf-8") as out:
        out.writelines(otlp(body) + "\n" for body in requests)


if __name__ == "__main__":
    main()
