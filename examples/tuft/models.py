"""The models behind the service: small doubles of what needs a GPU in TuFT.

TuFT's backends call a model in another process, by `model.method.remote(…)`,
and hand it the trace context, since no context crosses a process by itself.
The double does its arithmetic with the toy model that TuFT ships, and opens
the same spans as the model it stands for.
"""

import gpu_stand_ins  # noqa: F401  (before TuFT; also in Ray's worker processes)

import asyncio
import contextvars
import json
import threading
import types as python_types
from typing import Any

import numpy as np
from opentelemetry.trace import Span
from tinker import types
from tuft.backend import ModelBackend, build_backend
from tuft.config import ModelConfig
from tuft.telemetry.tracing import extract_context, get_tracer

VOCABULARY = 1000


class TrainingModel:
    """A base model with one adapter for each training run."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        # A row for each token: one that it does not have is an IndexError.
        self._embedding = np.zeros((VOCABULARY, 1))
        self._adapters: dict[str, ModelBackend] = {}

    def _span(self, operation: str, carrier: dict[str, str] | None):
        # The tracer is looked up at each call, as TuFT does. In a process that
        # nobody set telemetry up in it makes spans that go nowhere.
        return get_tracer("tuft.hf_training_model").start_as_current_span(
            f"hf_model.{operation}", context=extract_context(carrier or {})
        )

    async def async_init(self) -> None:
        """Answers when the model is ready."""

    async def create_adapter(self, lora_id: str, lora_config: types.LoraConfig, trace_context=None) -> None:
        with self._span("create_adapter", trace_context) as span:
            span.set_attribute("tuft.lora_id", lora_id)
            span.set_attribute("tuft.lora_alpha", lora_config.rank * self._config.lora_alpha_ratio)
            self._adapters[lora_id] = build_backend(self._config.model_name, lora_config.rank, self._config.seed)

    async def remove_adapter(self, lora_id: str) -> None:
        self._adapters.pop(lora_id, None)

    async def forward(self, data, lora_id, loss_fn, loss_fn_config, backward=False, trace_context=None):
        name = "forward_backward" if backward else "forward"
        with self._span(name, trace_context) as span:
            span.set_attribute("tuft.lora_id", lora_id)
            span.set_attribute("tuft.backward", backward)
            span.set_attribute("tuft.data_count", len(data))
            span.set_attribute("tuft.num_micro_batches", -(-len(data) // self._config.micro_batch_size))
            for datum in data:
                self._embedding[datum.model_input.to_ints()]
            adapter = self._adapters[lora_id]
            compute = adapter.forward_backward if backward else adapter.forward
            return compute(data, loss_fn, loss_fn_config)

    async def optim_step(self, adam_params, lora_id, trace_context=None):
        with self._span("optim_step", trace_context) as span:
            span.set_attribute("tuft.lora_id", lora_id)
            return self._adapters[lora_id].optim_step(adam_params)

    async def save_state(self, lora_id, checkpoint_record, optimizer, trace_context=None) -> None:
        with self._span("save_state", trace_context) as span:
            _describe_state(span, lora_id, optimizer)
            folder = checkpoint_record.adapter_path
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "state.json").write_text(json.dumps(self._adapters[lora_id].snapshot_state()))

    async def load_state(self, lora_id, checkpoint_record, optimizer, trace_context=None) -> None:
        with self._span("load_state", trace_context) as span:
            _describe_state(span, lora_id, optimizer)
            state = json.loads((checkpoint_record.adapter_path / "state.json").read_text())
            self._adapters[lora_id].load_state(state)


def _describe_state(span: Span, lora_id: str, optimizer: bool) -> None:
    span.set_attribute("tuft.lora_id", lora_id)
    span.set_attribute("tuft.optimizer", optimizer)


class SamplingEngine:
    """Answers each prompt by counting on from its last token."""

    def __init__(self) -> None:
        self._adapters: set[int] = set()

    async def prepare(self) -> None:
        """Answers when the engine is ready."""

    async def get_api_server_url(self) -> None:
        """There is no API server of the engine's own."""

    async def add_lora(self, request) -> bool:
        self._adapters.add(request.lora_int_id)
        return True

    async def remove_lora(self, lora_int_id: int) -> None:
        self._adapters.discard(lora_int_id)

    async def shutdown(self) -> None:
        self._adapters.clear()

    async def generate(self, prompt, lora_request, *, n: int, max_tokens: int, **_: Any):
        start = prompt["prompt_token_ids"][-1]
        tokens = [start + i for i in range(1, max_tokens + 1)]
        output = python_types.SimpleNamespace(
            token_ids=tokens,
            finish_reason="length",
            logprobs=[{token: python_types.SimpleNamespace(logprob=-0.5)} for token in tokens],
        )
        return python_types.SimpleNamespace(outputs=[output] * n)


class ThreadActor:
    """Calls an object's methods in a thread of its own, as Ray would in a process.

    Only what is passed as an argument gets across: the thread has its own event
    loop and its own, empty, trace context.
    """

    def __init__(self, target: object, name: str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    def __getattr__(self, method: str) -> "_RemoteMethod":
        return _RemoteMethod(getattr(self._target, method), self._loop)


class _RemoteMethod:
    def __init__(self, method, loop: asyncio.AbstractEventLoop) -> None:
        self._method = method
        self._loop = loop

    async def remote(self, *args: Any, **kwargs: Any) -> Any:
        # Started from an empty context: the caller's, with its current span,
        # would be copied along otherwise, which no process does.
        future = contextvars.Context().run(
            asyncio.run_coroutine_threadsafe, self._method(*args, **kwargs), self._loop
        )
        return await asyncio.wrap_future(future)
