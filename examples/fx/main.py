"""Trains a forecaster of exchange rates, once for each of the toolkit's ways of tracing.

    python main.py [--steps 4] [--seed 1] [--truth FILE] [--url-as-given]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from importlib import metadata

import torch

# The ways of tracing, and the names that the processes give themselves.
PROGRAMS = {"numbered": None, "documented": "fx-forecasting", "nested": "fx-nested"}


def train(tracing, service, options, truth):
    environment = dict(os.environ)
    environment.pop("OTEL_SERVICE_NAME", None)
    if service:
        environment["OTEL_SERVICE_NAME"] = service
    command = [
        sys.executable, str(pathlib.Path(__file__).with_name("train.py")), f"--tracing={tracing}",
        f"--steps={options.steps}", f"--seed={options.seed}", f"--truth={truth}",
    ]
    if options.url_as_given:
        command.append("--url-as-given")
    if subprocess.run(command, env=environment).returncode != 0:
        sys.exit(f"the program with {tracing} tracing failed, or its telemetry was not taken")
    return json.loads(truth.read_text())


def account(programs):
    """Put what the programs did together."""
    spans = {}
    for program in programs:
        for name, count in program["spans"].items():
            spans[name] = spans.get(name, 0) + count
    packages = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-instrumentation-logging")
    return {
        "system": "fx",
        "versions": {"torch": torch.__version__} | {name: metadata.version(name) for name in packages},
        "services": [program["service"] for program in programs],
        "spans": spans,
        "steps": {program["service"]: program["batches"] for program in programs},
        "numbers": {f"logs {program['service']}": program["logs"] for program in programs},
        "losses": [loss for program in programs for loss in program["losses"]],
        "errors": [error for program in programs for error in program["errors"]],
        "notes": [
            "the toolkit is no package: these are training loops that trace as its sources do",
            "the toolkit itself sends no log records; here a LoggerProvider is added",
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4, help="batches of each of the two epochs (4)")
    parser.add_argument("--seed", type=int, default=1, help="of the model and the data (1)")
    parser.add_argument("--truth", type=pathlib.Path, help="write down as JSON what was done")
    parser.add_argument("--url-as-given", action="store_true",
                        help="post spans to OTEL_EXPORTER_OTLP_ENDPOINT as it is, as the toolkit does, not to /v1/traces")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("argument --steps: an epoch has at least one batch")

    with tempfile.TemporaryDirectory() as folder:
        programs = [
            train(tracing, service, options, pathlib.Path(folder) / f"{tracing}.json")
            for tracing, service in PROGRAMS.items()
        ]
    if options.truth:
        options.truth.write_text(json.dumps(account(programs), indent=2) + "\n")


if __name__ == "__main__":
    main()
