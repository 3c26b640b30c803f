"""Chats with a small local model server, seen by two instrumentations.

The same program runs three times: instrumented by OpenLLMetry, by
OpenInference, and by both at once. What it asked for and was told goes into
the truth file, to compare with what a collector made of the telemetry.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from importlib.metadata import version

from chat_server import ChatServer
from client import SERVICES

FOLDER = pathlib.Path(__file__).parent
# The names that the instrumentations give their spans.
SPAN_NAMES = {
    "openllmetry": ["openai.chat"],
    "openinference": ["ChatCompletion"],
    # OpenLLMetry wraps the call, OpenInference the HTTP request below it.
    "both": ["openai.chat", "ChatCompletion"],
}
PACKAGES = [
    "openai",
    "opentelemetry-instrumentation-openai",
    "openinference-instrumentation-openai",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
]


def run_client(instrumentation, base_url, options):
    """Runs the client in a process of its own: an instrumentation changes the
    OpenAI package for the whole process."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch, "report.json")
        done = subprocess.run(
            [
                sys.executable, FOLDER / "client.py",
                "--instrumentation", instrumentation,
                "--base-url", base_url,
                "--steps", str(options.steps),
                "--seed", str(options.seed),
                "--report", report,
            ],
        )
        if done.returncode != 0:
            sys.exit(f"the client with {instrumentation} ended with {done.returncode}")
        return json.loads(report.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", help="file for what was done")
    parser.add_argument("--steps", type=int, default=4, help="pairs of a plain and a streamed request")
    parser.add_argument("--seed", type=int, default=1, help="decides how long the requests are")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be at least 2, so that both models are asked")

    truth = {
        "system": "llm",
        "versions": {package: version(package) for package in PACKAGES},
        "services": list(SERVICES.values()),
        "spans": {},
        "tokens": {},
        "numbers": {},
        "keys": {},
        "errors": [],
        "notes": ["The model is a local server that answers with as many words as it was asked for."],
    }
    with ChatServer() as server:
        for instrumentation, service in SERVICES.items():
            report = run_client(instrumentation, server.base_url, options)
            for name in SPAN_NAMES[instrumentation]:
                truth["spans"][name] = truth["spans"].get(name, 0) + report["requests"]
            for model, counts in report["tokens"].items():
                truth["tokens"][f"{service}/{model}"] = counts
            truth["numbers"][f"{service}/requests"] = report["requests"]
            truth["numbers"][f"{service}/failures"] = len(report["errors"])
            truth["keys"][f"{service}/request"] = report["answers"]
            # With both instrumentations each failure has two spans.
            spans_each = len(SPAN_NAMES[instrumentation])
            for position, ids in enumerate(report["failed_spans"]):
                truth["errors"].append(report["errors"][position // spans_each] | ids | {"payload": False})

    if options.truth:
        pathlib.Path(options.truth).write_text(json.dumps(truth, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
