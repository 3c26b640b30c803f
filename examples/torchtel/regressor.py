"""The model of the example. Two of its calls can fail, and say with what."""

import torch
from payload import reported


class Regressor(torch.nn.Module):
    """Two layers that learn a sum."""

    def __init__(self, features: int, hidden: int):
        super().__init__()
        # Rows of scratch memory for each sample.
        self.window = 1
        self.weight = torch.nn.Parameter(torch.randn(features, hidden) / features**0.5)
        self.readout = torch.nn.Linear(hidden, 1)

    def forward(self, batch):
        reported(allocate, len(batch) * self.window, self.readout.in_features)
        return self.readout(torch.tanh(reported(project, batch, self.weight)))


def project(batch, weight):
    """Multiply a batch by a weight; both may be tensors or nested lists."""
    return torch.matmul(torch.as_tensor(batch), torch.as_tensor(weight))


def allocate(rows: int, columns: int):
    """Return an empty matrix of float32, or raise PyTorch's out-of-memory error.

    On a GPU PyTorch raises that type by itself. On the CPU the refusal of its
    allocator is a plain RuntimeError, which is told apart by its text.
    """
    try:
        return torch.empty(rows, columns)
    except RuntimeError as refusal:
        if "can't allocate memory" not in str(refusal):
            raise
        raise torch.cuda.OutOfMemoryError(str(refusal)) from refusal
