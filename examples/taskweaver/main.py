"""Has two conversations with an agent and writes down what was done.

    python main.py [--truth FILE] [--steps N] [--seed N]
"""

import argparse
import collections
import importlib.metadata
import json
import os
import random
import sys
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

import tracing
from agent import Model, Session

SESSIONS = 2
# The round in which the agent's first code is wrong.
FAILING_ROUND = 1


class Observer(SpanProcessor):
    """Counts the spans that end and notes those that failed."""

    def __init__(self) -> None:
        self.spans: collections.Counter[str] = collections.Counter()
        self.errors: list[dict] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans[span.name] += 1
        if span.status.status_code is trace.StatusCode.ERROR:
            self.errors.append(
                {
                    "span": span.name,
                    # There is no exception on the span, only a sentence.
                    "type": "",
                    "message": span.status.description,
                    "trace_id": format(span.context.trace_id, "032x"),
                    "span_id": format(span.context.span_id, "016x"),
                    "payload": False,
                }
            )


def task(rng: random.Random, round_index: int) -> tuple[str, list[str]]:
    """Returns a request and the code for it, wrong code first in one round."""
    numbers = [rng.randrange(100) for _ in range(5)]
    request = f"What is the mean of {numbers}?"
    attempts = [f"numbers = {numbers}\nprint(statistics.mean(numbers))"]
    if round_index == FAILING_ROUND:
        attempts.insert(0, "print(statistics.mean([n for n in numbers if n > 1000]))")
    return request, attempts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, help="where to write what was done, as JSON")
    parser.add_argument("--steps", type=int, default=4, help="rounds of each conversation (4)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    observer, model, rng = Observer(), Model(), random.Random(arguments.seed)
    stop_tracing = tracing.start(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317"), observer)
    sessions = [Session(model) for _ in range(SESSIONS)]
    for round_index in range(arguments.steps):
        for session in sessions:
            session.send_message(*task(rng, round_index))
    for session in sessions:
        session.stop()
    unsent = stop_tracing()

    packages = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-grpc"]
    truth = {
        "system": "taskweaver",
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "services": [tracing.SERVICE],
        "spans": dict(sorted(observer.spans.items())),
        "tokens": model.tokens,
        "keys": {
            "session": [session.id for session in sessions],
            "round": [id for session in sessions for id in session.round_ids],
        },
        "errors": observer.errors,
        "notes": [
            "TaskWeaver is not on PyPI: the loop is this example's, its spans, attributes and counter are TaskWeaver's",
            "tokens are counted words and punctuation marks, not tiktoken's",
            "the model's answers are written beforehand",
        ],
    }
    if arguments.truth:
        arguments.truth.write_text(json.dumps(truth, indent=1))
    if unsent:
        sys.exit("\n".join(unsent))
    print(f"{sum(len(s.rounds) for s in sessions)} rounds, {sum(observer.spans.values())} spans")


if __name__ == "__main__":
    main()
