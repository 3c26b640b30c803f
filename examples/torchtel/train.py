"""One rank of a data-parallel training job, as torchrun starts it.

TorchTel is used as its documentation says: set OpenTelemetry up, hand it the
model, train, take it off again. It reads OTEL_EXPORTER_OTLP_ENDPOINT when it is
imported, and sends spans and metrics there over HTTP.
"""

import argparse
import collections
import json
import logging
import pathlib
import sys

import payload
import torch
import torch.distributed
from regressor import Regressor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torchtel import PyTorchInstrumentor, setup_opentelemetry

EPOCHS = 2
FEATURES, HIDDEN, BATCH = 8, 16, 4


def samples(count, seed):
    inputs = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def list_optimizers():
    """Give torch.optim the list of its optimizers, where PyTorch has none.

    TorchTel goes through that list. Without it, it patches no optimizer and
    counts no step.
    """
    if hasattr(torch.optim, "__all__"):
        return []
    torch.optim.__all__ = [name for name, value in vars(torch.optim).items() if isinstance(value, type)]
    return [f"torch.optim of PyTorch {torch.__version__} has no __all__, which TorchTel reads: the example adds it"]


class ExportErrors(logging.Handler):
    """Remembers whether OpenTelemetry could not send something: it only logs."""

    def __init__(self):
        super().__init__(level=logging.ERROR)
        self.seen = False

    def emit(self, record):
        self.seen = True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, required=True, help="optimizer steps in all")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--truth", type=pathlib.Path, required=True, help="folder for what each rank did")
    options = parser.parse_args()

    # What this rank does, counted where it does it.
    spans = collections.Counter()
    steps = 0

    torch.distributed.init_process_group("gloo")
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(options.seed)
    net = Regressor(FEATURES, HIDDEN)

    notes = list_optimizers()
    export_errors = ExportErrors()
    logging.getLogger("opentelemetry").addHandler(export_errors)
    tracer_provider, meter_provider = setup_opentelemetry()
    instrumentor = PyTorchInstrumentor().instrument(model=net)

    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    steps_per_epoch = options.steps // EPOCHS
    training = samples(steps_per_epoch * BATCH * world_size, options.seed)
    sampler = DistributedSampler(training, shuffle=True, seed=options.seed)
    loader = DataLoader(training, batch_size=BATCH, sampler=sampler)
    validation = DataLoader(samples(BATCH, options.seed + 1), batch_size=BATCH)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            for name in ("dataloader.next", "Regressor.forward", "autograd.backward", "AdamW.step"):
                spans[name] += 1
        # TorchTel does not know what the forward passes are for: those of the
        # validation have the same name.
        with torch.no_grad():
            for inputs, targets in validation:
                loss = torch.nn.functional.mse_loss(net(inputs), targets)
                spans["dataloader.next"] += 1
                spans["Regressor.forward"] += 1
        # The end of each of the two loaders.
        spans["dataloader.next"] += 2
        if rank == 0:
            print(f"epoch {epoch}: validation loss {loss.item():.4f}")

    # Two requests that cannot be served: a feature is missing, and a window
    # that no memory holds.
    for inputs, window in ((torch.zeros(2, FEATURES - 1), 1), (torch.zeros(2, FEATURES), 2**44)):
        net.window = window
        try:
            net(inputs)
        except RuntimeError as error:
            print(f"rank {rank}: {type(error).__name__}: {error}")
        spans["Regressor.forward"] += 1

    # Only this ends the span "train".
    instrumentor.uninstrument()
    spans["train"] += 1
    torch.distributed.destroy_process_group()
    tracer_provider.shutdown()
    meter_provider.shutdown()

    account = {
        "rank": rank,
        "steps": steps,
        "spans": spans,
        "parameters": sum(parameter.numel() for parameter in net.parameters() if parameter.requires_grad),
        "errors": payload.failures,
        "notes": notes,
    }
    (options.truth / f"rank-{rank}.json").write_text(json.dumps(account))
    sys.exit(1 if export_errors.seen else 0)


if __name__ == "__main__":
    main()
