"""Requests one by one, and their outputs step by step: vLLM's LLMEngine."""

import itertools
from typing import Any, Iterable, Optional, Union

from octavo._library import Engine
from octavo.engine_args import EngineArgs, engine_options
from octavo.llm import Tokenizer
from octavo.adapters import Adapters, LoRARequest
from octavo.outputs import Assembly, RequestOutput, request_body
from octavo.refused import refuses
from octavo.sampling_params import RequestOutputKind, SamplingParams


@refuses
class LLMEngine:
    """A model in this process. Call step() while has_unfinished_requests()."""

    def __init__(self, model: Optional[str] = None, **options: Any):
        self._engine = Engine(engine_options({"model": model, **options}))
        self._adapters = Adapters(self._engine)
        self._ids = itertools.count()
        self._running: dict[int, tuple[str, Assembly, RequestOutputKind]] = {}  # by the engine's request number

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, *_: Any, **__: Any) -> "LLMEngine":
        return cls(**vars(engine_args))

    def add_request(self, request_id: str, prompt: Any, params: SamplingParams, arrival_time: Optional[float] = None,
                    lora_request: Optional[LoRARequest] = None, tokenization_kwargs: Optional[dict] = None,
                    trace_headers: Optional[dict] = None, priority: int = 0) -> str:
        """Submits a request. The engine begins it at once."""
        if any(name == request_id for name, _, _ in self._running.values()):
            raise ValueError(f"request_id: {request_id!r} is in use")
        body, text = request_body(prompt, params, tokenization_kwargs)
        body.update(self._adapters.body(lora_request))
        if priority:
            body["priority"] = priority
        request = next(self._ids)
        assembly = Assembly(self._engine, request_id, text, params.n, params.output_kind, lora_request)
        self._engine.submit(request, body, stream=params.output_kind is not RequestOutputKind.FINAL_ONLY)
        self._running[request] = (request_id, assembly, params.output_kind)
        return request_id

    def step(self) -> list[RequestOutput]:
        """New outputs, one for each request that has some; waits up to a second for the first."""
        outputs: dict[int, RequestOutput] = {}
        shown: list[RequestOutput] = []
        for piece in self._engine.wait(1000) if self._running else []:
            _, assembly, kind = self._running[piece.request]
            if piece.last:
                del self._running[piece.request]
            output = assembly.take(piece)
            if kind is RequestOutputKind.DELTA:
                shown.append(output)
            elif kind is RequestOutputKind.CUMULATIVE or output.finished:
                outputs[piece.request] = output
        return [*shown, *outputs.values()]

    def abort_request(self, request_ids: Union[str, Iterable[str]]) -> None:
        """Ends requests; step() returns them once more, with finish_reason "abort"."""
        ids = {request_ids} if isinstance(request_ids, str) else set(request_ids)
        for request, (name, _, _) in self._running.items():
            if name in ids:
                self._engine.abort(request)

    def has_unfinished_requests(self) -> bool:
        return bool(self._running)

    def get_num_unfinished_requests(self) -> int:
        return len(self._running)

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._engine)

    def reset_prefix_cache(self, reset_running_requests: bool = False, reset_connector: bool = False) -> bool:
        """Drops cached prefixes that no running request uses. reset_running_requests: those of running requests stay."""
        self._engine.reset_prefix_cache()
        return True

    def shutdown(self) -> None:
        self._engine.close()
