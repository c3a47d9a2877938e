"""Requests one by one, and their outputs step by step: vLLM's LLMEngine."""

import itertools
from collections import deque
from typing import Any, Iterable, Optional, Union

from octavo._library import Engine, Piece
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
        self._pieces: deque[Piece] = deque()  # from the engine, but not yet returned by step()

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, *_: Any, **__: Any) -> "LLMEngine":
        return cls(**vars(engine_args))

    def add_request(self, request_id: str, prompt: Any, params: SamplingParams, arrival_time: Optional[float] = None,
                    lora_request: Optional[LoRARequest] = None, tokenization_kwargs: Optional[dict] = None,
                    trace_headers: Optional[dict] = None, priority: int = 0) -> str:
        """Submits a request, which starts at once."""
        if any(name == request_id for name, _, _ in self._running.values()):
            raise ValueError(f"request_id: {request_id!r} is in use")
        body, text = request_body(prompt, params, tokenization_kwargs)
        body.update(self._adapters.body(lora_request))
        if priority:
            body["priority"] = priority
        request = next(self._ids)
        assembly = Assembly(self._engine, request_id, text, params.n, params.output_kind, lora_request,
                            body)
        self._engine.submit(request, body, stream=params.output_kind is not RequestOutputKind.FINAL_ONLY)
        self._running[request] = (request_id, assembly, params.output_kind)
        return request_id

    def step(self) -> list[RequestOutput]:
        """Returns new outputs, at most one for each request. Waits up to a second for the first."""
        outputs: dict[int, RequestOutput] = {}
        shown: list[RequestOutput] = []
        if self._running and not self._pieces:
            self._pieces.extend(self._engine.wait(1000))
        while self._pieces:
            piece = self._pieces[0]
            if piece.finish_reason == "error" and (shown or outputs):
                break  # the next step raises the error, after these outputs
            self._pieces.popleft()
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
        """Aborts requests. step() returns a last output for each, with finish_reason "abort"."""
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
        """Drops cached prefixes that no running request uses. reset_running_requests has no effect on running requests.
        """
        self._engine.reset_prefix_cache()
        return True

    def shutdown(self) -> None:
        self._engine.close()
