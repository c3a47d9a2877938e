"""Offline inference: vLLM's LLM class."""

import dataclasses
import itertools
import json
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Union

from octavo._library import Engine, ResourceExhausted
from octavo.beam_search import BeamSearchOutput, BeamSearchParams, Search
from octavo.metrics import Metric, read_metrics
from octavo.outputs import Assembly, RequestOutput, prompt_of, request_body
from octavo.pooling import (ClassificationOutput, EmbeddingOutput, PoolingOutput, PoolingParams, PoolingRequestOutput,
                            Reading, ScoringOutput, classification, embedding, pooled, scoring)
from octavo.sampling_params import SamplingParams

# Maximum number of requests in the engine; more wait in Python.
_IN_FLIGHT_MAX = 1024
_SAVE_SECONDS_MAX = 10

# vLLM's options that have no effect here, with their accepted values.
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
    """Options for the engine: the flags of `octavo serve` with _ for -."""
    out = {"model": model}
    for name, value in options.items():
        neutral = _NEUTRAL_OPTIONS.get(name)
        if neutral is None:
            out[name] = _fields(value) if dataclasses.is_dataclass(value) else value
        elif value is not None and not neutral(value):
            raise ValueError(f"{name}: {value!r} is not supported")
    return {name: value for name, value in out.items() if value is not None}


def _fields(config: Any) -> dict[str, Any]:
    """The fields of a dataclass that are set."""
    return {name: value for name, value in dataclasses.asdict(config).items() if value not in (None, {})}


def _saves_blocks(options: dict[str, Any]) -> bool:
    """Whether a folder gets the KV blocks of prompts."""
    config = options.get("kv_transfer_config")
    config = json.loads(config) if isinstance(config, str) else config
    return bool(config) and config.get("kv_connector") == "SharedStorageConnector"


def _close_if_idle(engine: Engine, lock: threading.Lock) -> None:
    if lock.acquire(blocking=False):
        engine.close()


def check_sleep_mode(mode: str) -> None:
    if mode not in ("abort", "wait"):
        raise ValueError(f"mode: must be 'abort' or 'wait', not {mode!r}")


def check_wake_tags(tags: Optional[list[str]]) -> None:
    if tags and set(tags) != {"weights", "kv_cache"}:
        raise ValueError(f"tags: {tags!r}: weights and KV cache wake together")


def profile_session(profile_prefix: Optional[str], delay_iterations: Optional[int],
                    max_iterations: Optional[int]) -> dict[str, Any]:
    """Options for a new trace of the engine."""
    return {"profile_prefix": profile_prefix, "delay_iterations": delay_iterations, "max_iterations": max_iterations}


class Tokenizer:
    """The model's tokenizer."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._engine.encode(text, add_special_tokens)

    def decode(self, token_ids: Union[int, Sequence[int]], skip_special_tokens: bool = False) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        return self._engine.decode(ids, skip_special_tokens)


PoolingParamsForEach = Union[PoolingParams, Sequence[PoolingParams], None]


@dataclass
class _Job:
    submit: Callable[[int], None]  # submits the request with this number
    begin: Callable[[int], Any]  # returns the receiver of its pieces


def _listed(prompts: Any) -> list[Any]:
    """One prompt, or several, as a list."""
    if isinstance(prompts, (str, dict)) or (prompts and isinstance(prompts[0], int)):
        return [prompts]
    return list(prompts)


class LLM:
    """A model in this process; without `model`, the package's demo model.

        Further options are the flags of `octavo serve` with _ for -: max_model_len, quantization, gpu_memory_utilization .."""

    def __init__(self, model: Optional[str] = None, **options: Any):
        options = engine_options(model, options)
        self._engine = Engine(options)
        self._saves_blocks = _saves_blocks(options)
        self._ids = itertools.count()
        self._lock = threading.Lock()  # one batch at a time
        # At exit, too: the engine writes pending KV blocks when it ends.
        weakref.finalize(self, _close_if_idle, self._engine, self._lock)

    def generate(self, prompts: Any, sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
                 use_tqdm: bool = True) -> list[RequestOutput]:
        """Completes prompts in one batch and returns outputs in their order. A prompt is a text, token ids, or a dictionary with
                "prompt" or "prompt_token_ids". sampling_params: one for all prompts, or one for each."""
        prompts = _listed(prompts)
        params = self._params_for_each(sampling_params, len(prompts))
        return self._generate([(*request_body(prompt, p), p.n) for prompt, p in zip(prompts, params)], use_tqdm)

    def chat(self, messages: Any, sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None,
             use_tqdm: bool = True, add_generation_prompt: bool = True, continue_final_message: bool = False,
             tools: Optional[list[dict]] = None, chat_template_kwargs: Optional[dict] = None,
             chat_template: Optional[str] = None) -> list[RequestOutput]:
        """Answers a conversation, or each of a list of conversations, with the model's chat template or the given one."""
        conversations = [messages] if messages and isinstance(messages[0], dict) else messages
        params = self._params_for_each(sampling_params, len(conversations))
        more: dict[str, Any] = {"add_generation_prompt": add_generation_prompt,
                                "continue_final_message": continue_final_message}
        if tools:
            # tools go into the prompt only; the output text is not parsed
            more.update(tools=tools, tool_choice="none")
        if chat_template:
            more["chat_template"] = chat_template
        if chat_template_kwargs:
            more["chat_template_kwargs"] = chat_template_kwargs
        return self._generate([({"messages": conversation, **p.body(chat=True), **more}, None, p.n)
                               for conversation, p in zip(conversations, params)], use_tqdm)

    def beam_search(self, prompts: Any, params: BeamSearchParams) -> list[BeamSearchOutput]:
        """The beam_width most likely texts after each prompt (as in generate()), by vLLM's rules: extends each beam by its
                2 * beam_width most likely tokens. A sequence that reaches max_model_len ends there."""
        tokenizer = self.get_tokenizer()
        eos = set(self._engine.info["eos_token_ids"])
        given = [prompt_of(prompt)[0] for prompt in _listed(prompts)]
        searches = [Search(tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt), params, eos)
                    for prompt in given]
        one = SamplingParams(max_tokens=1, temperature=params.temperature, logprobs=2 * params.beam_width)
        for _ in range(params.max_tokens):
            going = [search for search in searches if search.beams and
                     len(search.beams[0].tokens) < self._engine.info["max_model_len"]]
            if not going:
                break
            outputs = iter(self.generate([beam.tokens for search in going for beam in search.beams], one, use_tqdm=False))
            for search in going:
                search.extend([next(outputs).outputs[0].logprobs[0] for _ in search.beams])
        found = [BeamSearchOutput(search.result()) for search in searches]
        for sequence in (sequence for output in found for sequence in output.sequences):
            sequence.text = tokenizer.decode(sequence.tokens)
        return found

    def encode(self, prompts: Any, pooling_params: PoolingParamsForEach = None, *, pooling_task: Optional[str] = None,
               use_tqdm: bool = True) -> list[PoolingRequestOutput[PoolingOutput]]:
        """The output of the model's head for each prompt. pooling_task: "embed" or "classify"; default: the model's task."""
        return self._read("/pooling", _listed(prompts), pooling_params, pooled, use_tqdm,
                          {"task": pooling_task} if pooling_task else {})

    def embed(self, prompts: Any, *, pooling_params: PoolingParamsForEach = None,
              use_tqdm: bool = True) -> list[PoolingRequestOutput[EmbeddingOutput]]:
        """The embedding of each prompt, from an embedding model. prompts as in generate(); pooling_params: one for all
                prompts, or one for each."""
        return self._read("/v1/embeddings", _listed(prompts), pooling_params, embedding, use_tqdm)

    def classify(self, prompts: Any, *, pooling_params: PoolingParamsForEach = None,
                 use_tqdm: bool = True) -> list[PoolingRequestOutput[ClassificationOutput]]:
        """The class probabilities of each prompt, from a classifier."""
        return self._read("/classify", _listed(prompts), pooling_params, classification, use_tqdm)

    def score(self, data_1: Union[str, Sequence[str]], data_2: Union[str, Sequence[str]], *,
              pooling_params: Optional[PoolingParams] = None,
              use_tqdm: bool = True) -> list[PoolingRequestOutput[ScoringOutput]]:
        """The similarity of text pairs: data_1[i] with data_2[i], or one text with each of data_2. Cross-encoders read both
                texts together; for embedding models it is the cosine."""
        first = [data_1] if isinstance(data_1, str) else list(data_1)
        second = [data_2] if isinstance(data_2, str) else list(data_2)
        if len(first) == 1:
            first *= len(second)
        if len(first) != len(second):
            raise ValueError(f"data_1: {len(first)} texts for {len(second)} of data_2; give one, or the same number")
        more = pooling_params.body() if pooling_params else {}
        return self._submit_texts("/score", [{"text_1": a, "text_2": b, **more} for a, b in zip(first, second)], scoring,
                                  use_tqdm)

    def get_default_sampling_params(self) -> SamplingParams:
        """The sampling parameters of generation_config.json."""
        return SamplingParams(**self._engine.info["default_sampling_params"])

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._engine)

    def reset_prefix_cache(self) -> bool:
        self._engine.reset_prefix_cache()
        return True

    def stats(self) -> dict[str, int]:
        """Gauges and counters of the engine: running, waiting, blocks_used, generation_tokens .."""
        return self._engine.stats()

    def get_metrics(self) -> list[Metric]:
        """The engine's metrics, with the names of the server's /metrics."""
        return read_metrics(self._engine.metrics())

    def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """Frees memory until wake_up(), for LLM(enable_sleep_mode=True). Level 1 frees the KV cache; level 2 also frees the
                weights, which wake_up() reads again. First waits for a running call, in every mode."""
        check_sleep_mode(mode)
        with self._lock:
            self._engine.sleep(level)

    def wake_up(self, tags: Optional[list[str]] = None) -> bool:
        """Accepts requests again. tags: None, since weights and cache wake together."""
        check_wake_tags(tags)
        self._engine.wake_up()
        return True

    def start_profile(self, profile_prefix: Optional[str] = None, *, delay_iterations: Optional[int] = None,
                      max_iterations: Optional[int] = None) -> None:
        """Begins a trace of the engine's steps, for LLM(profiler_config={"profiler": "torch", "torch_profiler_dir": "traces"}).
                max_iterations: number of steps after which it ends; 0: no limit."""
        self._engine.start_profile(profile_session(profile_prefix, delay_iterations, max_iterations))

    def stop_profile(self) -> None:
        """Ends the trace: a file in that folder, for ui.perfetto.dev or chrome://tracing."""
        self._engine.stop_profile()

    def close(self) -> None:
        """Frees the model's memory; call nothing else afterwards."""
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
            raise ValueError(f"sampling_params: {len(params)} for {count} prompts; give one, or one for each")
        return list(params)

    def _generate(self, bodies: list[tuple[dict, Optional[str], int]], use_tqdm: bool) -> list[RequestOutput]:
        """bodies: each with its text and its number of choices."""
        generated = self._engine.stats()["generation_tokens"]
        outputs = self._run([_Job(lambda request, body=body: self._engine.submit(request, body, stream=False),
                                  lambda request, text=text, n=n: Assembly(self._engine, str(request), text, n))
                             for body, text, n in bodies], use_tqdm)
        if self._saves_blocks:
            self._wait_saved(generated)
        return outputs

    def _wait_saved(self, generated: int) -> None:
        """Returns when the folder has the prompts' blocks, as with vLLM's connector: another process can load them then.
                generated: the engine's count of tokens before the batch."""
        deadline = time.monotonic() + _SAVE_SECONDS_MAX
        while time.monotonic() < deadline:
            stats = self._engine.stats()
            idle = stats["generation_tokens"] > generated and stats["running"] + stats["waiting"] == 0
            if idle and not any(m.value for m in self.get_metrics() if m.name == "vllm:kv_transfer_held_blocks"):
                return
            time.sleep(0.002)

    def _read(self, route: str, prompts: list[Any], params: "PoolingParamsForEach", read: Callable[[dict], Any],
              use_tqdm: bool, more: Optional[dict] = None) -> list[PoolingRequestOutput]:
        each = [params] * len(prompts) if params is None or isinstance(params, PoolingParams) else list(params)
        if len(each) != len(prompts):
            raise ValueError(f"pooling_params: {len(each)} for {len(prompts)} prompts; give one, or one for each")
        fields = {**({} if route == "/classify" else {"encoding_format": "base64"}), **(more or {})}
        return self._submit_texts(route, [{"input": prompt_of(prompt)[0], **fields, **(p.body() if p else {})}
                                          for prompt, p in zip(prompts, each)], read, use_tqdm)

    def _submit_texts(self, route: str, bodies: list[dict], read: Callable[[dict], Any],
                      use_tqdm: bool) -> list[PoolingRequestOutput]:
        return self._run([_Job(lambda request, body=body: self._engine.submit_texts(request, route, body),
                               lambda request: Reading(str(request), read)) for body in bodies], use_tqdm)

    def _run(self, jobs: "list[_Job]", use_tqdm: bool) -> list[Any]:
        with self._lock:
            return self._run_locked(jobs, use_tqdm)

    def _run_locked(self, jobs: "list[_Job]", use_tqdm: bool) -> list[Any]:
        waiting = deque(enumerate(jobs))
        running: dict[int, tuple[int, Any]] = {}
        done: list[Any] = [None] * len(jobs)
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
        return done

    def _submit_more(self, waiting: deque, running: dict[int, tuple[int, Any]]) -> None:
        while waiting and len(running) < _IN_FLIGHT_MAX:
            number, job = waiting[0]
            request = next(self._ids)
            try:
                job.submit(request)
            except ResourceExhausted:
                if running:
                    return
                raise
            waiting.popleft()
            running[request] = (number, job.begin(request))

    def _drop(self, running: dict[int, Any]) -> None:
        """After an error: aborts running requests, so that their outputs do not appear in the next call."""
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
    """A tqdm progress bar, if tqdm is installed and the output is a terminal."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoProgress()
    return tqdm(total=total, desc="Processed prompts", disable=None if wanted else True)
