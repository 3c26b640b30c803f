"""A small multi-task forecaster of exchange rates and the data it learns from."""

import torch

TASKS = ("direction", "volatility", "return")
WINDOW, BATCH, HELD_OUT = 16, 32, 64


class Forecaster(torch.nn.Module):
    """One encoder, one head for each task."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(WINDOW, 32), torch.nn.ReLU())
        self.direction = torch.nn.Linear(32, 2)
        self.volatility = torch.nn.Linear(32, 2)
        self.returns = torch.nn.Linear(32, 1)

    def forward(self, windows):
        encoded = self.encoder(windows)
        return {
            "direction": self.direction(encoded),
            "volatility": self.volatility(encoded),
            "return": self.returns(encoded).squeeze(-1),
        }


def rates(samples, seed):
    """Return windows of a random walk and what comes next, made from a seed."""
    steps = torch.randn(samples, WINDOW + 1, generator=torch.Generator().manual_seed(seed)) * 0.01
    following = steps[:, -1]
    return steps[:, :-1], {
        "direction": (following > 0).long(),
        "volatility": (following.abs() > 0.01).long(),
        "return": following,
    }


def losses(outputs, targets):
    """Return the loss of each task."""
    entropy, squares = torch.nn.functional.cross_entropy, torch.nn.functional.mse_loss
    return {task: (squares if task == "return" else entropy)(outputs[task], targets[task]) for task in TASKS}


def evaluate(model, seed):
    """Return the metrics of data that the model has not seen."""
    windows, targets = rates(HELD_OUT, seed)
    with torch.no_grad():
        outputs = model(windows)
        return {
            "loss": sum(losses(outputs, targets).values()).item(),
            "dir_acc": (outputs["direction"].argmax(dim=1) == targets["direction"]).float().mean().item(),
            "ret_rmse": torch.nn.functional.mse_loss(outputs["return"], targets["return"]).sqrt().item(),
        }
