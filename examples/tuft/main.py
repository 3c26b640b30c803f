"""Fine-tunes two models through TuFT and writes down what it did.

    python main.py [--truth FILE] [--steps N] [--seed N]

Starts the server (service.py) and drives it with the Tinker SDK, TuFT's client,
as a user's script would. Telemetry comes from the server alone: the SDK sends
no OTLP and no trace context.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import tinker
from tinker import types

HERE = Path(__file__).resolve().parent
API_KEY = "tml-example-key"
MODELS = ["Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B"]
VOCABULARY = 1000
BATCH = 4
RANK = 8
SAMPLES, MAX_TOKENS = 2, 12
START_TIMEOUT = 120


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_service(port: int, report: Path, ray: bool) -> subprocess.Popen:
    command = [sys.executable, HERE / "service.py", "--port", str(port), "--report", report, "--end-with-stdin"]
    service = subprocess.Popen(command + ([] if ray else ["--no-ray"]), stdin=subprocess.PIPE)
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/healthz", timeout=1).close()
            return service
        except OSError:
            if service.poll() is not None:
                sys.exit(f"the service ended with exit code {service.returncode} before it was ready")
            if time.monotonic() > deadline:
                service.kill()
                sys.exit(f"the service is not ready after {START_TIMEOUT} s")
            time.sleep(0.2)


def batch(rng: random.Random, size: int = BATCH) -> list[types.Datum]:
    """Sentences of random tokens and what is to follow each token."""
    data = []
    for _ in range(size):
        tokens = [rng.randrange(VOCABULARY) for _ in range(9)]
        data.append(
            types.Datum(
                model_input=types.ModelInput.from_ints(tokens[:-1]),
                loss_fn_inputs={"target_tokens": tokens[1:]},
            )
        )
    return data


def mistaken(data: list[types.Datum]) -> list[types.Datum]:
    """One sentence with a token that the model does not know, as of another model's tokenizer."""
    tokens = data[0].model_input.to_ints() + [151_643]
    return [types.Datum(model_input=types.ModelInput.from_ints(tokens), loss_fn_inputs=data[0].loss_fn_inputs)]


def fine_tune(client: tinker.ServiceClient, model: str, steps: int, rng: random.Random, truth: dict) -> None:
    training = client.create_lora_training_client(base_model=model, rank=RANK)
    run, losses = training.model_id, []

    # Both requests are on their way before the first is answered, as in the
    # SDK's own examples; TuFT runs them in order.
    for step in range(steps):
        loss = training.forward_backward(batch(rng), "cross_entropy")
        update = training.optim_step(types.AdamParams(learning_rate=1e-3 / (step + 1)))
        losses.append(loss.result().metrics["loss:mean"])
        update.result()
    print(f"{model}: losses {losses}")
    truth["steps"][run] = steps
    training.forward(batch(rng), "cross_entropy").result()

    try:
        training.forward_backward(mistaken(batch(rng)), "cross_entropy").result()
    except ValueError:
        # What the SDK raises where an operation of the server has failed.
        pass
    else:
        sys.exit("an unknown token was accepted")

    saved = training.save_state("end").result().path
    training.load_state(saved).result()

    sampler = training.save_weights_and_get_sampling_client()
    prompt = types.ModelInput.from_ints([1, 2, 3])
    answer = sampler.sample(prompt, SAMPLES, types.SamplingParams(max_tokens=MAX_TOKENS)).result()
    truth["tokens"]["sampling"]["output"] += sum(len(sequence.tokens) for sequence in answer.sequences)

    # Last, since TuFT takes no further request of a run after this failure. No
    # span of its own is open at that point: only the future's tells of it.
    try:
        training.load_state(saved.replace("end", "never-saved")).result()
    except ValueError:
        pass
    else:
        sys.exit("a checkpoint was loaded that nobody saved")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, help="where to write what was done, as JSON")
    parser.add_argument("--steps", type=int, default=3, help="optimizer steps of each model (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=int, default=len(MODELS), help=f"how many models to train ({len(MODELS)})")
    parser.add_argument("--no-ray", action="store_true", help="run no model in a Ray actor")
    arguments = parser.parse_args()

    truth: dict = {
        "system": "tuft",
        "services": ["tuft"],
        "steps": {},
        "tokens": {"sampling": {"output": 0}},
        "notes": ["losses go to the client only: TuFT puts them on no span and in no metric"],
    }
    os.environ["TINKER_TELEMETRY"] = "0"
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:
        report, port = Path(scratch, "report.json"), free_port()
        service = start_service(port, report, ray=not arguments.no_ray)
        try:
            client = tinker.ServiceClient(base_url=f"http://127.0.0.1:{port}", api_key=API_KEY)
            for model in MODELS[: arguments.models]:
                fine_tune(client, model, arguments.steps, rng, truth)
        finally:
            service.send_signal(signal.SIGTERM)
            code = service.wait(timeout=START_TIMEOUT)
        if code != 0:
            sys.exit(f"the service ended with exit code {code}")
        observed = json.loads(report.read_text())

    truth |= {key: observed[key] for key in ("versions", "spans", "keys", "errors")}
    truth["notes"].append(f"in a Ray actor, whose spans TuFT does not export: {observed['in_ray']}")
    if arguments.truth:
        arguments.truth.write_text(json.dumps(truth, indent=1))
    if observed["unsent"]:
        sys.exit("\n".join(observed["unsent"]))
    print(f"{sum(truth['steps'].values())} steps of {len(truth['steps'])} models, {sum(truth['spans'].values())} spans")


if __name__ == "__main__":
    main()
