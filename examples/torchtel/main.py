"""Trains a small model on two ranks under TorchTel and sends what it traces.

    python main.py [--steps 6] [--seed 1] [--truth FILE]

It starts train.py by torchrun, on this machine's CPU.
"""

import argparse
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
from importlib import metadata

import torch

RANKS = 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun(options, folder):
    environment = {
        # TorchTel has no default: without this it sends to "/v1/traces".
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
        "OMP_NUM_THREADS": "1",
        # The ranks talk over the loopback interface.
        "GLOO_SOCKET_IFNAME": "lo",
        **os.environ,
    }
    subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run",
            f"--nproc_per_node={RANKS}", "--master_addr=127.0.0.1", f"--master_port={free_port()}",
            # Stdout to a file and from there to the terminal: under Python
            # 3.11 torchrun of PyTorch 1.13 cannot parse its own default.
            "--redirects=1", "--tee=1", f"--log_dir={folder}",
            str(pathlib.Path(__file__).with_name("train.py")),
            f"--steps={options.steps}", f"--seed={options.seed}", f"--truth={folder}",
        ],
        env=environment,
        check=True,
    )


def account(folder):
    """Put what the ranks did together."""
    ranks = [json.loads(file.read_text()) for file in sorted(folder.glob("rank-*.json"))]
    spans = collections.Counter()
    for rank in ranks:
        spans.update(rank["spans"])
    packages = ("torchtel", "clusterscope", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
    return {
        "system": "torchtel",
        "versions": {"torch": torch.__version__} | {name: metadata.version(name) for name in packages},
        "services": ["torchtel"],
        "spans": spans,
        "steps": {str(rank["rank"]): rank["steps"] for rank in ranks},
        "numbers": {"parameters": ranks[0]["parameters"]},
        "errors": [error for rank in ranks for error in rank["errors"]],
        "notes": sorted({note for rank in ranks for note in rank["notes"]})
        + ["no gpu.memory.bytes is sent without a GPU"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help="optimizer steps of each rank, an even number (6)")
    parser.add_argument("--seed", type=int, default=1, help="of the model and the data (1)")
    parser.add_argument("--truth", type=pathlib.Path, help="write down as JSON what was done")
    options = parser.parse_args()
    if options.steps < 2 or options.steps % 2:
        parser.error("argument --steps: it takes an even number from 2 on: there are two epochs")

    with tempfile.TemporaryDirectory() as folder:
        try:
            torchrun(options, folder)
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)
        did = account(pathlib.Path(folder))
    if options.truth:
        options.truth.write_text(json.dumps(did, indent=2) + "\n")


if __name__ == "__main__":
    main()
