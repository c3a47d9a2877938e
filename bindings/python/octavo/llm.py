"""Offline inference: vLLM's LLM class."""

import itertools
import threading
from collections import deque
from typing import Any, Callable, Optional, Sequence, Union

from octavo._library import Engine, ResourceExhausted
from octavo.outputs import Assembly, RequestOutput, request_body
from octavo.sampling_params import SamplingParams

# Requests in the engine at a time; more wait in Python.
_IN_FLIGHT_MAX = 1024

# Options of vLLM's that change nothing here, with the values that may be given.
_NEUTRAL_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "tokenizer_mode": lambda value: value == "auto",
    "trust_remote_code": lambda value: isinstance(value, bool),
    "tensor_parallel_size": lambda value: value == 1,
    "pipeline_parallel_size": lambda value: value == 1,
    "data_parallel_size": lambda value: value == 1,
    "disable_log_stats": lambda value: isinstance(value, bool),
    "skip_tokenizer_init": lambda value: value is False,
    "swap_space": lambda value: value is None or value >= 0,
}


def engine_options(model: Optional[str], options: dict[str, Any]) -> dict[str, Any]:
    """Options for the engine: those of `octavo serve` with _ for -."""
    out = {"model": model}
    for name, value in options.items():
        neutral = _NEUTRAL_OPTIONS.get(name)
        if neutral is None:
            out[name] = value
        elif not neutral(value):
            raise ValueError(f"{name}: {value!r} is not supported")
    return {name: value for name, value in out.items() if value is not None}


class Tokenizer:
    """The model's tokenizer."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._engine.encode(text, add_special_tokens)

    def decode(self, token_ids: Union[int, Sequence[int]], skip_special_tokens: bool = False) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        return self._engine.decode(ids, skip_special_tokens)


class LLM:
    """A model in this process. Without `model` the demo model that comes with the package.

    Further options are the flags of `octavo serve` with _ for -: max_model_len, quantization, gpu_memory_utilization ..
    """

    def __init__(self, model: Optional[str] = None, **options: Any):
        self._engine = Engine(engine_options(model, options))
        self._ids = itertools.count()
        self._lock = threading.Lock()  # one batch at a time

    def generate(self, prompts: Any, sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
                 use_tqdm: bool = True) -> list[RequestOutput]:
        """Completes prompts (each a text, token ids, or a dictionary with "prompt" or "prompt_token_ids"), all of them
        batched; outputs come in the order of the prompts. sampling_params: one for all, or one for each."""
        if isinstance(prompts, (str, dict)) or (prompts and isinstance(prompts[0], int)):
            prompts = [prompts]
        params = self._params_for_each(sampling_params, len(prompts))
        return self._run([(*request_body(prompt, p), p.n) for prompt, p in zip(prompts, params)], use_tqdm)

    def chat(self, messages: Any, sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None,
             use_tqdm: bool = True, add_generation_prompt: bool = True, continue_final_message: bool = False,
             tools: Optional[list[dict]] = None, chat_template_kwargs: Optional[dict] = None) -> list[RequestOutput]:
        """Answers a conversation, or each of a list of conversations, by the model's chat template."""
        conversations = [messages] if messages and isinstance(messages[0], dict) else messages
        params = self._params_for_each(sampling_params, len(conversations))
        more: dict[str, Any] = {"add_generation_prompt": add_generation_prompt,
                                "continue_final_message": continue_final_message}
        if tools:
            more.update(tools=tools, tool_choice="none")  # in the prompt; the answer's text is left as it is
        if chat_template_kwargs:
            more["chat_template_kwargs"] = chat_template_kwargs
        return self._run([({"messages": conversation, **p.body(chat=True), **more}, None, p.n)
                          for conversation, p in zip(conversations, params)], use_tqdm)

    def get_default_sampling_params(self) -> SamplingParams:
        """What generation_config.json says."""
        return SamplingParams(**self._engine.info["default_sampling_params"])

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._engine)

    def reset_prefix_cache(self) -> bool:
        self._engine.reset_prefix_cache()
        return True

    def stats(self) -> dict[str, int]:
        """Gauges and counters of the engine: running, waiting, blocks_used, generation_tokens .."""
        return self._engine.stats()

    def close(self) -> None:
        """Frees the model's memory; nothing else may be called any more."""
        self._engine.close()

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _params_for_each(self, params: Union[SamplingParams, Sequence[SamplingParams], None],
                         count: int) -> list[SamplingParams]:
        if params is None:
            params = self.get_default_sampling_params()
        if isinstance(params, SamplingParams):
            return [params] * count
        if len(params) != count:
            raise ValueError(f"sampling_params: {len(params)} for {count} prompts")
        return list(params)

    def _run(self, jobs: list[tuple[dict, Optional[str], int]], use_tqdm: bool) -> list[RequestOutput]:
        """jobs: bodies, with the text and number of answers of each."""
        with self._lock:
            return self._run_locked(jobs, use_tqdm)

    def _run_locked(self, jobs: list[tuple[dict, Optional[str], int]], use_tqdm: bool) -> list[RequestOutput]:
        waiting = deque(enumerate(jobs))
        running: dict[int, tuple[int, Assembly]] = {}
        done: list[Optional[RequestOutput]] = [None] * len(jobs)
        progress = _progress(len(jobs), use_tqdm)
        try:
            while waiting or running:
                self._submit_more(waiting, running)
                for piece in self._engine.wait(1000):
                    number, assembly = running[piece.request]
                    if piece.last:
                        del running[piece.request]
                    done[number] = assembly.take(piece)
                    if piece.last:
                        progress.update(1)
        finally:
            progress.close()
            self._drop(running)
        return done  # type: ignore[return-value]

    def _submit_more(self, waiting: deque, running: dict[int, tuple[int, Assembly]]) -> None:
        while waiting and len(running) < _IN_FLIGHT_MAX:
            number, (body, text, n) = waiting[0]
            request = next(self._ids)
            try:
                self._engine.submit(request, body, stream=False)
            except ResourceExhausted:
                if running:
                    return
                raise
            waiting.popleft()
            running[request] = (number, Assembly(self._engine, str(request), text, n))

    def _drop(self, running: dict[int, Any]) -> None:
        """After an error: ends what is running, so that none of it turns up in the next call."""
        for request in running:
            self._engine.abort(request)
        while running:
            for piece in self._engine.wait(1000):
                if piece.last:
                    running.pop(piece.request, None)


class _NoProgress:
    def update(self, count: int) -> None: ...
    def close(self) -> None: ...


def _progress(total: int, wanted: bool) -> Any:
    """A bar by tqdm, where it is installed and somebody watches."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoProgress()
    return tqdm(total=total, desc="Processed prompts", disable=None if wanted else True)
