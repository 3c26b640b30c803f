#!/usr/bin/env python3
"""Records what LLM clients send, beside what a model server served them.

    record.py [--into FOLDER] [CLIENT …]

CLIENT is a program in clients/, by default all, or one in unseen/, whose recording is
others/CLIENT.json by default. Each runs in an environment of
its own, with the packages that its "requires:" lines name, against the server of
model_server.py: a program in Python in a virtual environment, one for Node.js in
a folder with node_modules, one for Java with packages of Maven. FOLDER/CLIENT.json,
by default recordings/CLIENT.json, has the versions of these packages, the server's log, and
the OTLP requests in the order of arrival, as OTLP/JSON.
"""

import argparse
import base64
import gzip
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

from model_server import ModelServer

FOLDER = pathlib.Path(__file__).resolve().parent
VENVS = FOLDER.parent.parent / ".cache" / "venvs"
UV = "uv==0.13.8"
# Packages that are newer than the pinned ones are not installed.
NEWEST = "2026-11-20"
EXPORTER = "opentelemetry-exporter-otlp-proto-http"
SENDS = f"{EXPORTER}==1.45.1"
SIGNALS = ("traces", "metrics")
# The folders of programs, and where their recordings are.
RECORDINGS = {"clients": "recordings", "unseen": "others"}
LIMIT = 150 * 1024
# Ids are bytes, which OTLP/JSON writes in hexadecimal digits.
IDS = ("traceId", "spanId", "parentSpanId")


class Sink(BaseHTTPRequestHandler):
    """Takes OTLP over HTTP."""

    def do_POST(self):
        body = self.body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        kind = self.path.rsplit("/", 1)[-1]
        if kind in SIGNALS:
            is_json = self.headers["Content-Type"] == "application/json"
            self.server.requests.append((kind, clean(json.loads(body) if is_json else decode(kind, body))))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def body(self):
        """Reads the body, which Node.js sends in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, format, *args):
        pass


def decode(kind, body):
    """Returns an OTLP request as JSON, with the packages of the client's environment."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    message = ExportTraceServiceRequest if kind == "traces" else ExportMetricsServiceRequest
    return hexadecimal(MessageToDict(message.FromString(body), use_integers_for_enums=True))


def hexadecimal(value):
    if isinstance(value, list):
        return [hexadecimal(item) for item in value]
    if isinstance(value, dict):
        return {key: base64.b64decode(item).hex() if key in IDS else hexadecimal(item) for key, item in value.items()}
    return value


def clean(value):
    """Returns a request as OTLP/JSON, without names of this machine and without stack traces."""
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        if "stacktrace" in value.get("key", ""):
            return value | {"value": {"stringValue": "Traceback"}}
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, str):
        for text, instead in ((str(FOLDER), "/app"), (sys.prefix, "/venv"), (str(VENVS), "/venvs"), (str(pathlib.Path.home()), "/home/user"),
                              (platform.release(), "6.1.0")):
            value = value.replace(text, instead)
        return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "host-1", value)
    return value


def program_of(client):
    return next(program for folder in RECORDINGS for program in (FOLDER / folder).glob(f"{client}.*"))


def requirements(client):
    return re.findall(r"^(?:#|//) requires: (.+)$", program_of(client).read_text(), re.MULTILINE)


def environment_of(client):
    """Returns the folder of the client's environment, which it makes if need be."""
    folder, packages = VENVS / f"genai-{client}", requirements(client)
    make = {".py": make_python, ".java": make_java}.get(program_of(client).suffix, make_node)
    if make is make_python:
        if not any(package.startswith(EXPORTER) for package in packages):
            packages.append(SENDS)
    stamp, wanted = folder / "stamp", "\n".join([*packages, NEWEST])
    if not stamp.exists() or stamp.read_text() != wanted:
        make(folder, packages)
        stamp.write_text(wanted)
    return folder


def make_python(folder, packages):
    tool = VENVS / "lock"
    if not (tool / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", tool], check=True)
        subprocess.run([tool / "bin" / "python", "-m", "pip", "install", "--quiet", UV], check=True)
    uv = [tool / "bin" / "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--clear", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--python", python, "--exclude-newer", NEWEST, *packages], check=True)


def make_node(folder, packages):
    folder.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "--prefix", folder, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--before", NEWEST]
    subprocess.run([*npm, *packages], check=True)


def make_java(folder, packages):
    make_python(folder, [SENDS])  # which reads what is sent
    names = ("groupId", "artifactId", "version")
    each = ["".join(f"<{name}>{part}</{name}>" for name, part in zip(names, package.split(":"))) for package in packages]
    wanted = "".join(f"<dependency>{coordinates}</dependency>" for coordinates in each)
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>a</groupId>'
        f"<artifactId>a</artifactId><version>1</version><dependencies>{wanted}</dependencies></project>")
    subprocess.run(["mvn", "-q", "-B", "-f", folder, "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"], check=True)


def run(client, environment):
    """Runs a client. Python runs it in this environment, Node.js and Java where its packages are."""
    program = program_of(client)
    # A program may have the name of the package that it uses.
    command = [sys.executable, "-P", program]
    library = VENVS / f"genai-{client}" / "jars"
    if program.suffix == ".java":
        agents = [f"-javaagent:{agent}" for agent in library.glob("*-javaagent-*.jar")]
        command = ["java", *agents, "-cp", f"{library}/*", program]
    elif program.suffix != ".py":
        command = ["node", shutil.copy(program, VENVS / f"genai-{client}")]
    subprocess.run(command, env=environment, check=True, timeout=300)


def versions(client):
    """Returns the versions of the packages that the client names."""
    if program_of(client).suffix == ".py":
        return {name: version(name) for name in (re.split(r"[\[=<]", line)[0] for line in requirements(client))}
    if program_of(client).suffix == ".java":
        return dict(line.rsplit(":", 1) for line in requirements(client))
    modules = VENVS / f"genai-{client}" / "node_modules"
    names = [line[:1] + line[1:].partition("@")[0] for line in requirements(client)]
    return {name: json.loads((modules / name / "package.json").read_text())["version"] for name in names}


def record(client, into):
    """Runs a client and writes its recording. It runs in the client's environment."""
    sink = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    sink.requests = []
    thread = threading.Thread(target=sink.serve_forever)
    thread.start()
    try:
        with ModelServer(numbered=program_of(client).parent.name == "unseen") as server:
            environment = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "OPENAI_"))} | {
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.server_port}", "MODEL_URL": server.url,
                "OPENAI_API_KEY": "not-needed", "ANTHROPIC_API_KEY": "not-needed", "PYTHONPATH": str(FOLDER),
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": client, "PYTHONWARNINGS": "ignore",
                "OTEL_LOGS_EXPORTER": "none", "OTEL_JAVAAGENT_ENABLED": "true",
                # They fetch prices and report their use otherwise.
                "LITELLM_LOCAL_MODEL_COST_MAP": "true", "DO_NOT_TRACK": "true",
            }
            run(client, environment)
            served = list(server.served)
    finally:
        sink.shutdown()
        thread.join()
        sink.server_close()
    lines = [f'"versions":{json.dumps(versions(client))}', '"served":[\n' + ",\n".join(json.dumps(call) for call in served) + "]"]
    for kind in SIGNALS:
        of = [json.dumps(request, separators=(",", ":")) for name, request in sink.requests if name == kind]
        lines.append(f'"{kind}":[\n' + ",\n".join(of) + "]")
    text = "{" + ",\n".join(lines) + "}\n"
    into = into or FOLDER / RECORDINGS[program_of(client).parent.name]
    into.mkdir(exist_ok=True)
    if len(text) > LIMIT:
        sys.exit(f"record: {client} sent {len(text)} bytes, more than {LIMIT}")
    (into / f"{client}.json").write_text(text)
    print(f"record: {client}: served {len(served)}, sent {len(sink.requests)} requests, {len(text)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    options = parser.parse_args()
    failed = []
    for client in options.clients or sorted(path.stem for path in (FOLDER / "clients").glob("*.*")):
        if options.inside:
            record(client, options.into)
            continue
        python = environment_of(client) / "bin" / "python"
        inside = [python if python.exists() else sys.executable, __file__, "--inside", *(["--into", options.into] if options.into else []), client]
        if subprocess.run(inside).returncode != 0:
            failed.append(client)
    if failed:
        sys.exit(f"record: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
