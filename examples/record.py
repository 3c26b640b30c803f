#!/usr/bin/env python3
"""Records the OTLP requests of an example.

    examples/record.py NAME [argument of the example …]
    examples/record.py --copy

It needs bin/otelcol-ml (make build) and the example's virtual environment
(examples/venv.sh NAME). The collector does nothing but write what arrives:
recording/{traces,metrics,logs}.json in the example's folder have one request a
line, as OTLP/JSON, in the order of arrival. Names of this machine, its user and
its folders are replaced.

The components test with copies of the recordings, in testdata/recordings, since
each is a module that has to be whole by itself. Recording makes the copies too;
--copy makes those of all examples and records nothing.
"""

import getpass
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

LIMIT = 100 * 1024
SIGNALS = ("traces", "metrics", "logs")
# The components that test with recordings, and the signals that each takes.
COMPONENTS = {
    "processor/mlenrichprocessor": SIGNALS,
    "processor/reprogenprocessor": ("traces",),
    "connector/mlmetricsconnector": ("traces",),
}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(folder, grpc, http, health):
    """Return a collector's configuration; JSON is YAML."""
    return json.dumps({
        "extensions": {"health_check": {"endpoint": f"127.0.0.1:{health}"}},
        "receivers": {"otlp": {"protocols": {
            "grpc": {"endpoint": f"127.0.0.1:{grpc}"},
            "http": {"endpoint": f"127.0.0.1:{http}"},
        }}},
        "exporters": {f"file/{name}": {"path": str(folder / f"{name}.json")} for name in SIGNALS},
        "service": {
            "extensions": ["health_check"],
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {name: {"receivers": ["otlp"], "exporters": [f"file/{name}"]} for name in SIGNALS},
        },
    })


def await_ready(collector, health):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if collector.poll() is not None:
            sys.exit(f"record: the collector ended with {collector.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{health}", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit("record: the collector was not ready within 60 s")


def run(name, arguments, folder):
    grpc, http, health = free_port(), free_port(), free_port()
    (folder / "collector.yaml").write_text(configuration(folder, grpc, http, health))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{grpc if name in OVER_GRPC else http}"
    with open(folder / "collector.log", "wb") as log:
        collector = subprocess.Popen(
            [ROOT / "bin" / "otelcol-ml", "--config", folder / "collector.yaml"], stdout=log, stderr=log)
        try:
            await_ready(collector, health)
            program = [ROOT / ".cache" / "venvs" / name / "bin" / "python", ROOT / "examples" / name / "main.py"]
            subprocess.run([*program, *arguments], env=environment, check=True)
        finally:
            collector.send_signal(signal.SIGTERM)
            collector.wait(timeout=60)


# The examples whose clients speak gRPC.
OVER_GRPC = frozenset(("taskweaver", "tuft"))


def replacements():
    """Return what must not be recorded and what stands for it, longest first."""
    import sysconfig
    found = {
        str(ROOT): "/app",
        str(pathlib.Path.home()): "/home/user",
        sysconfig.get_path("stdlib"): "/usr/lib/python3",
        os.path.realpath(tempfile.gettempdir()): "/tmp",
    }
    return sorted(found.items(), key=lambda item: -len(item[0]))


def scrub(value, key=""):
    """Return a decoded request without names of this machine."""
    if isinstance(value, dict):
        # An attribute: its key says what its value is.
        name = value.get("key", key) if isinstance(value.get("value"), dict) else key
        return {k: scrub(v, name) for k, v in value.items()}
    if isinstance(value, list):
        return [scrub(item, key) for item in value]
    if not isinstance(value, str):
        return value
    if value == socket.gethostname():
        return "host-1"
    if value == getpass.getuser() and "user" in key.lower():
        return "user-1"
    for text, instead in replacements():
        value = value.replace(text, instead)
    return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "host-1", value) if "host" in key.lower() else value


def record(name, arguments):
    target = ROOT / "examples" / name / "recording"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run(name, arguments, folder)
        for kind in SIGNALS:
            requests = (folder / f"{kind}.json").read_text().splitlines() if (folder / f"{kind}.json").exists() else []
            text = "".join(json.dumps(scrub(json.loads(request)), separators=(",", ":")) + "\n" for request in requests)
            file = target / f"{kind}.json"
            if not text:
                file.unlink(missing_ok=True)
                continue
            file.write_text(text)
            print(f"record: {len(requests)} requests, {len(text)} bytes in {file.relative_to(ROOT)}")
            if len(text) > LIMIT:
                sys.exit(f"record: {file.relative_to(ROOT)} is larger than {LIMIT} bytes: have the example do less")


def copy(name):
    """Give each component its copy of a recording."""
    for component, signals in COMPONENTS.items():
        target = ROOT / component / "testdata" / "recordings" / name
        for kind in signals:
            source = ROOT / "examples" / name / "recording" / f"{kind}.json"
            if source.exists():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / f"{kind}.json")
            else:
                (target / f"{kind}.json").unlink(missing_ok=True)


def main():
    names = sorted(folder.parent.name for folder in ROOT.glob("examples/*/main.py"))
    match sys.argv[1:]:
        case ["--copy"]:
            recorded = names
        case [name, *arguments] if name in names:
            record(name, arguments)
            recorded = [name]
        case _:
            sys.exit(f"usage: examples/record.py NAME [argument of the example ...], or --copy; NAME is one of {', '.join(names)}")
    for name in recorded:
        copy(name)
    print("record: the copies in the components' testdata/recordings are made. What is expected of them:")
    print(f"for c in {' '.join(COMPONENTS)}; do GOWORK=off go test -C $c -run TestRecordings -update . || break; done")


if __name__ == "__main__":
    main()
