"""Inference for asyncio programs: vLLM's AsyncLLM."""

import asyncio
import itertools
import threading
from dataclasses import dataclass
from typing import Any, AsyncGenerator, Optional

from octavo._library import Engine, OctavoError, Piece
from octavo.engine_args import EngineArgs, engine_options
from octavo.llm import Tokenizer, check_sleep_mode, check_wake_tags, profile_session
from octavo.adapters import Adapters, LoRARequest
from octavo.outputs import Assembly, RequestOutput, request_body
from octavo.refused import refuses
from octavo.sampling_params import RequestOutputKind, SamplingParams


@dataclass
class _Reader:
    loop: asyncio.AbstractEventLoop
    pieces: "asyncio.Queue[Piece]"


@refuses
class AsyncLLM:
    """A model in this process, whose answers stream to any number of coroutines.

    async for output in llm.generate("One rainy morning in", SamplingParams(max_tokens=64), "request 1"):
        print(output.outputs[0].text)
    """

    def __init__(self, model: Optional[str] = None, **options: Any):
        self._engine = Engine(engine_options({"model": model, **options}))
        self._adapters = Adapters(self._engine)
        self._lock = threading.Lock()  # guards the members below
        self._readers: dict[int, _Reader] = {}
        self._requests: dict[str, int] = {}  # engine's id by caller's id
        self._ids = itertools.count()
        self._closing = False
        self._thread = threading.Thread(target=self._read, name="octavo-outputs", daemon=True)
        self._thread.start()

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, *_: Any, **__: Any) -> "AsyncLLM":
        """Makes an engine. Further arguments of vLLM (usage_context, stat_loggers ..) have no effect."""
        return cls(**vars(engine_args))

    async def generate(self, prompt: Any, sampling_params: SamplingParams, request_id: str, *,
                       lora_request: Optional[LoRARequest] = None, tokenization_kwargs: Optional[dict] = None,
                       trace_headers: Optional[dict] = None, priority: int = 0,
                       data_parallel_rank: Optional[int] = None) -> AsyncGenerator[RequestOutput, None]:
        """Completes a prompt. sampling_params.output_kind selects the contents of each output. Ending the loop early
        aborts the request. trace_headers has no effect: each request begins a trace."""
        if data_parallel_rank is not None:
            raise ValueError("data_parallel_rank: is not supported: the request goes to the least loaded engine")
        kind = sampling_params.output_kind
        body, text = request_body(prompt, sampling_params, tokenization_kwargs)
        body.update(await asyncio.to_thread(self._adapters.body, lora_request))
        if priority:
            body["priority"] = priority
        reader = _Reader(asyncio.get_running_loop(), asyncio.Queue())
        request = self._register(request_id, reader)
        assembly = Assembly(self._engine, request_id, text, sampling_params.n, kind, lora_request,
                            body)
        try:
            stream = kind is not RequestOutputKind.FINAL_ONLY
            # on another thread, since it tokenises and compiles grammars
            await asyncio.to_thread(self._submit, request, body, stream)
            finished = False
            while not finished:
                output = assembly.take(await reader.pieces.get())
                finished = output.finished
                if finished or stream:
                    yield output
        finally:
            self._forget(request_id, request)

    async def abort(self, request_id: str) -> None:
        """Aborts a request; its generate() yields one more output, with finish_reason "abort"."""
        with self._lock:
            request = self._requests.get(request_id)
        if request is not None:
            self._engine.abort(request)

    async def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._engine)

    async def reset_prefix_cache(self, reset_running_requests: bool = False, reset_connector: bool = False) -> None:
        self._engine.reset_prefix_cache()

    async def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """Like LLM.sleep(), after aborting running requests (mode "abort") or finishing them ("wait")."""
        check_sleep_mode(mode)
        if mode == "abort":
            with self._lock:
                running = list(self._requests.values())
            for request in running:
                self._engine.abort(request)
        await asyncio.to_thread(self._engine.sleep, level)

    async def wake_up(self, tags: Optional[list[str]] = None) -> None:
        check_wake_tags(tags)
        await asyncio.to_thread(self._engine.wake_up)

    async def is_sleeping(self) -> bool:
        return self.stats()["sleep_level"] != 0

    async def pause_generation(self, *, mode: str = "abort", wait_for_inflight_requests: Optional[bool] = None,
                               clear_cache: bool = True) -> None:
        """Makes new requests wait until resume_generation(). mode: "abort" aborts running requests, "wait" finishes
        them, "keep" interrupts them. clear_cache: drops cached prefixes, except with "keep"."""
        await asyncio.to_thread(self._engine.pause, "wait" if wait_for_inflight_requests else mode)
        if clear_cache and mode != "keep":
            self._engine.reset_prefix_cache()

    async def resume_generation(self) -> None:
        self._engine.resume()

    async def do_log_stats(self) -> None:
        """No effect: see stats() and the server's log."""

    async def check_health(self) -> None:
        """Raises OctavoError if the engine has failed."""
        if not self.stats()["healthy"]:
            raise OctavoError("the engine has failed: create a new AsyncLLM")

    async def start_profile(self, profile_prefix: Optional[str] = None, *, delay_iterations: Optional[int] = None,
                            max_iterations: Optional[int] = None) -> None:
        """Like LLM.start_profile()."""
        await asyncio.to_thread(self._engine.start_profile,
                                profile_session(profile_prefix, delay_iterations, max_iterations))

    async def stop_profile(self) -> None:
        await asyncio.to_thread(self._engine.stop_profile)

    def stats(self) -> dict[str, int]:
        return self._engine.stats()

    def shutdown(self) -> None:
        """Ends all requests and frees the model's memory."""
        self._closing = True
        self._thread.join()
        self._engine.close()

    def _register(self, request_id: str, reader: _Reader) -> int:
        with self._lock:
            if request_id in self._requests:
                raise ValueError(f"request_id: {request_id!r} is in use")
            request = next(self._ids)
            self._readers[request] = reader
            self._requests[request_id] = request
        return request

    def _submit(self, request: int, body: dict, stream: bool) -> None:
        self._engine.submit(request, body, stream)
        with self._lock:
            abandoned = request not in self._readers
        if abandoned:
            self._engine.abort(request)

    def _forget(self, request_id: str, request: int) -> None:
        with self._lock:
            self._requests.pop(request_id, None)
            running = self._readers.pop(request, None)
        if running:
            self._engine.abort(request)

    def _read(self) -> None:
        while not self._closing:
            pieces = self._engine.wait(100)
            with self._lock:
                for piece in pieces:
                    reader = self._readers.get(piece.request)
                    if reader is None:
                        continue
                    if piece.last:
                        del self._readers[piece.request]
                    reader.loop.call_soon_threadsafe(reader.pieces.put_nowait, piece)


AsyncLLMEngine = AsyncLLM
