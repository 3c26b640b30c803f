"""Stands in for the packages that TuFT imports but needs only on a GPU.

TuFT's server, controllers, futures, storage and telemetry run as published.
torch, vLLM and the sharded training backend are not installed; what other
modules of TuFT name of them while they are imported is named here and does
nothing. Import this module before anything of TuFT.
"""

import dataclasses
import importlib.machinery
import sys
import types


def _module(name: str, **members: object) -> types.ModuleType:
    module = types.ModuleType(name, "A stand-in: see gpu_stand_ins.py.")
    module.__spec__ = importlib.machinery.ModuleSpec(name, loader=None)
    module.__path__ = []
    vars(module).update(members)
    return sys.modules.setdefault(name, module)


@dataclasses.dataclass(frozen=True)
class LoRARequest:
    """Names an adapter to a sampling engine."""

    lora_int_id: int
    lora_name: str
    lora_path: str


_module("torch", Tensor=type("Tensor", (), {}))
_module("vllm")
_module("vllm.lora")
_module("vllm.lora.request", LoRARequest=LoRARequest)
_module("tuft.backends.fsdp_training_backend", FSDPTrainingBackend=None)
