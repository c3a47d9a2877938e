"""Offline inference: vLLM's LLM class."""

import json
import threading
import time
import weakref
from typing import Any, Callable, Optional, Sequence, Union

from octavo._library import Engine
from octavo.batch import Batches, Job
from octavo.beam_search import BeamSearchOutput, BeamSearchParams, Search
from octavo.engine_args import EngineArgs, engine_options
from octavo.adapters import Adapters, LoRARequest
from octavo.metrics import Metric, read_metrics
from octavo.outputs import Assembly, RequestOutput, prompt_of, request_body, tokenization
from octavo.pooling import (ClassificationOutput, PoolingOutput, PoolingParams, PoolingRequestOutput,
                            Reading, ScoringOutput, classification, embedding, pooled, rows, scoring)
from octavo.refused import refuses
from octavo.sampling_params import SamplingParams

_SAVE_SECONDS_MAX = 10


def _saves_blocks(options: dict[str, Any]) -> bool:
    """Whether the KV blocks of prompts are saved in a folder."""
    config = options.get("kv_transfer_config")
    config = json.loads(config) if isinstance(config, str) else config
    return bool(config) and config.get("kv_connector") == "SharedStorageConnector"


def _no_processor(kwargs: Optional[dict]) -> None:
    if kwargs:
        raise ValueError("mm_processor_kwargs: must be given to LLM(), because all requests use the same processor")


def _close_if_idle(engine: Engine, lock: threading.Lock) -> None:
    if lock.acquire(blocking=False):
        engine.close()


def check_sleep_mode(mode: str) -> None:
    if mode not in ("abort", "wait"):
        raise ValueError(f"mode: must be 'abort' or 'wait', not {mode!r}")


def check_wake_tags(tags: Optional[list[str]]) -> None:
    if tags and set(tags) != {"weights", "kv_cache"}:
        raise ValueError(f"tags: {tags!r}: weights and KV cache always wake together")


def profile_session(profile_prefix: Optional[str], delay_iterations: Optional[int],
                    max_iterations: Optional[int]) -> dict[str, Any]:
    """Returns the options of a new trace."""
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


ParamsForEach = Union[SamplingParams, Sequence[SamplingParams], None]
PoolingParamsForEach = Union[PoolingParams, Sequence[PoolingParams], None]
LoraForEach = Union[LoRARequest, Sequence[Optional[LoRARequest]], None]
PriorityForEach = Union[int, Sequence[int], None]


def _for_each(name: str, given: Any, count: int) -> list[Any]:
    """Returns a list with a value for each prompt. values: one for all prompts, or a list."""
    if not isinstance(given, (list, tuple)):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"{name}: must be one value or a list with one value for each of the {count} prompts, got {len(given)}")
    return list(given)


def _listed(prompts: Any) -> list[Any]:
    """Returns a list of prompts, also for a single one."""
    if isinstance(prompts, (str, dict)) or (prompts and isinstance(prompts[0], int)):
        return [prompts]
    return list(prompts)


@refuses
class LLM:
    """A model in this process; without `model`, the package's demo model. Further options are the flags of `octavo
    serve` with _ for -: max_model_len, quantization, gpu_memory_utilization .. Several ranks or engines
    (tensor_parallel_size, pipeline_parallel_size, data_parallel_size) run in child processes."""

    def __init__(self, model: Optional[str] = None, **options: Any):
        options = engine_options({"model": model, **options})
        self._engine = Engine(options)
        self._saves_blocks = _saves_blocks(options)
        self._ranks = [int(options.get(f"{kind}_parallel_size", 1)) for kind in ("tensor", "pipeline", "data")]
        self._adapters = Adapters(self._engine)
        self._batches = Batches(self._engine)
        self._queued: list[tuple[str, Job]] = []
        # Also at exit, since the engine then writes pending KV blocks.
        weakref.finalize(self, _close_if_idle, self._engine, self._batches.lock)

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs) -> "LLM":
        return cls(**vars(engine_args))

    def generate(self, prompts: Any, sampling_params: ParamsForEach = None, *, use_tqdm: Any = True,
                 lora_request: LoraForEach = None, priority: PriorityForEach = None,
                 tokenization_kwargs: Optional[dict] = None,
                 mm_processor_kwargs: Optional[dict] = None) -> list[RequestOutput]:
        """Completes prompts in one batch, and returns outputs in the order of the prompts. A prompt is a text, token
        ids, or a dictionary with "prompt" or "prompt_token_ids". sampling_params, lora_request, priority: one for all
        prompts, or one for each."""
        return self._generate(self._completions(prompts, sampling_params, lora_request, priority, tokenization_kwargs,
                                                mm_processor_kwargs), use_tqdm)

    def enqueue(self, prompts: Any, sampling_params: ParamsForEach = None, lora_request: LoraForEach = None,
                priority: PriorityForEach = None, use_tqdm: Any = True, tokenization_kwargs: Optional[dict] = None,
                mm_processor_kwargs: Optional[dict] = None) -> list[str]:
        """Adds prompts as in generate(); wait_for_completion() runs them. Returns a request id for each."""
        jobs = self._completions(prompts, sampling_params, lora_request, priority, tokenization_kwargs, mm_processor_kwargs)
        return self._queue(jobs)

    def wait_for_completion(self, output_type: Any = None, *, use_tqdm: Any = True) -> list[RequestOutput]:
        """Runs the prompts of enqueue() and enqueue_chat(). Returns outputs in their order."""
        queued, self._queued = self._queued, []
        outputs = self._generate([job for _, job in queued], use_tqdm)
        for (name, _), output in zip(queued, outputs):
            output.request_id = name
        return outputs

    def chat(self, messages: Any, sampling_params: ParamsForEach = None, use_tqdm: Any = True, lora_request: LoraForEach = None,
             priority: PriorityForEach = None, chat_template: Optional[str] = None,
             chat_template_content_format: str = "auto", add_generation_prompt: bool = True,
             continue_final_message: bool = False, tools: Optional[list[dict]] = None,
             chat_template_kwargs: Optional[dict] = None, tokenization_kwargs: Optional[dict] = None,
             mm_processor_kwargs: Optional[dict] = None) -> list[RequestOutput]:
        """Answers a conversation, or each conversation of a list, with the model's chat template or the given one."""
        return self._generate(self._chats(messages, sampling_params, lora_request, priority, chat_template,
                                          chat_template_content_format, add_generation_prompt, continue_final_message, tools,
                                          chat_template_kwargs, tokenization_kwargs, mm_processor_kwargs), use_tqdm)

    def enqueue_chat(self, messages: Any, sampling_params: ParamsForEach = None, lora_request: LoraForEach = None,
                     priority: PriorityForEach = None, use_tqdm: Any = True, **options: Any) -> list[str]:
        """Adds conversations as in chat(); wait_for_completion() runs them. Returns a request id for each."""
        return self._queue(self._chats(messages, sampling_params, lora_request, priority, **options))

    def _completions(self, prompts: Any, sampling_params: ParamsForEach, lora_request: LoraForEach, priority: PriorityForEach,
                     tokenization_kwargs: Optional[dict], mm_processor_kwargs: Optional[dict]) -> list[Job]:
        _no_processor(mm_processor_kwargs)
        prompts = _listed(prompts)
        each = self._values_for_each(sampling_params, lora_request, priority, len(prompts))
        return [self._job(*request_body(prompt, params, tokenization_kwargs), params.n, lora, rank)
                for prompt, (params, lora, rank) in zip(prompts, each)]

    def _chats(self, messages: Any, sampling_params: ParamsForEach, lora_request: LoraForEach, priority: PriorityForEach,
               chat_template: Optional[str] = None, chat_template_content_format: str = "auto",
               add_generation_prompt: bool = True, continue_final_message: bool = False, tools: Optional[list[dict]] = None,
               chat_template_kwargs: Optional[dict] = None, tokenization_kwargs: Optional[dict] = None,
               mm_processor_kwargs: Optional[dict] = None) -> list[Job]:
        _no_processor(mm_processor_kwargs)
        if chat_template_content_format != "auto":
            raise ValueError("chat_template_content_format: must be given to LLM(), because all requests use the same format")
        conversations = [messages] if messages and isinstance(messages[0], dict) else messages
        more: dict[str, Any] = {"add_generation_prompt": add_generation_prompt,
                                "continue_final_message": continue_final_message, **tokenization(tokenization_kwargs)}
        if tools:
            # tools are only in the prompt; the output is not parsed
            more.update(tools=tools, tool_choice="none")
        if chat_template:
            more["chat_template"] = chat_template
        if chat_template_kwargs:
            more["chat_template_kwargs"] = chat_template_kwargs
        each = self._values_for_each(sampling_params, lora_request, priority, len(conversations))
        return [self._job({"messages": conversation, **params.body(chat=True), **more}, None, params.n, lora, rank)
                for conversation, (params, lora, rank) in zip(conversations, each)]

    def beam_search(self, prompts: Any, params: BeamSearchParams, lora_request: LoraForEach = None, use_tqdm: Any = False,
                    concurrency_limit: Optional[int] = None, priority: PriorityForEach = None) -> list[BeamSearchOutput]:
        """Returns the beam_width most likely sequences for each prompt. prompts: as in generate(). As in vLLM, a step
        considers the 2 * beam_width most likely next tokens of each beam. A search ends when its beams have
        max_model_len tokens. concurrency_limit has no effect, because the scheduler limits concurrency."""
        tokenizer = self.get_tokenizer()
        eos = set(self._engine.info["eos_token_ids"])
        given = [prompt_of(prompt)[0] for prompt in _listed(prompts)]
        adapters, ranks = (_for_each(name, values, len(given)) for name, values in
                           (("lora_request", lora_request), ("priority", priority)))
        searches = [Search(tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt), params, eos)
                    for prompt in given]
        one = SamplingParams(max_tokens=1, temperature=params.temperature, logprobs=2 * params.beam_width)
        for _ in range(params.max_tokens):
            going = [which for which in zip(searches, adapters, ranks) if which[0].beams and
                     len(which[0].beams[0].tokens) < self._engine.info["max_model_len"]]
            if not going:
                break
            beams = [(beam.tokens, adapter, rank) for search, adapter, rank in going for beam in search.beams]
            tokens, adapter_of, rank_of = (list(column) for column in zip(*beams))
            outputs = iter(self.generate(tokens, one, use_tqdm=False, lora_request=adapter_of,
                                         priority=None if priority is None else rank_of))
            for search, _, _ in going:
                search.extend([next(outputs).outputs[0].logprobs[0] for _ in search.beams])
        found = [BeamSearchOutput(search.result()) for search in searches]
        for sequence in (sequence for output in found for sequence in output.sequences):
            sequence.text = tokenizer.decode(sequence.tokens)
        return found

    def encode(self, prompts: Any, pooling_params: PoolingParamsForEach = None, *, use_tqdm: Any = True,
               lora_request: LoraForEach = None, pooling_task: Optional[str] = None,
               tokenization_kwargs: Optional[dict] = None) -> list[PoolingRequestOutput[PoolingOutput]]:
        """Returns the output of the model's head for each prompt. pooling_task: "embed", "classify", "token_embed" or
        "token_classify"; default: the model's task."""
        of_tokens = (pooling_task or self._engine.info["pooling_task"]).startswith("token_")
        return self._read("/pooling", _listed(prompts), pooling_params, rows if of_tokens else pooled, use_tqdm,
                          lora_request,
                          {**tokenization(tokenization_kwargs), **({"task": pooling_task} if pooling_task else {})})

    def embed(self, prompts: Any, *, use_tqdm: Any = True, pooling_params: PoolingParamsForEach = None,
              lora_request: LoraForEach = None,
              tokenization_kwargs: Optional[dict] = None) -> list[PoolingRequestOutput[Any]]:
        """Returns the embedding of each prompt, from an embedding model. prompts: as in generate(). pooling_params,
        lora_request: one for all prompts, or one for each. Each output is an EmbeddingOutput. If the model's task is
        "token_embed", it is a PoolingOutput with a vector for each token or chunk."""
        of_tokens = self._engine.info["pooling_task"] == "token_embed"
        return self._read("/v1/embeddings", _listed(prompts), pooling_params, rows if of_tokens else embedding,
                          use_tqdm, lora_request, tokenization(tokenization_kwargs))

    def classify(self, prompts: Any, *, use_tqdm: Any = True, pooling_params: PoolingParamsForEach = None,
                 lora_request: LoraForEach = None,
                 tokenization_kwargs: Optional[dict] = None) -> list[PoolingRequestOutput[ClassificationOutput]]:
        """Returns the class probabilities of each prompt, from a classifier."""
        return self._read("/classify", _listed(prompts), pooling_params, classification, use_tqdm, lora_request,
                          tokenization(tokenization_kwargs))

    def score(self, data_1: Union[str, Sequence[str]], data_2: Union[str, Sequence[str]], *, use_tqdm: Any = True,
              pooling_params: Optional[PoolingParams] = None, lora_request: LoraForEach = None,
              tokenization_kwargs: Optional[dict] = None,
              chat_template: Optional[str] = None) -> list[PoolingRequestOutput[ScoringOutput]]:
        """Returns the similarity of text pairs: data_1[i] and data_2[i], or one text and each of data_2. A
        cross-encoder reads both texts together; with an embedding model, the similarity is the cosine."""
        first = [data_1] if isinstance(data_1, str) else list(data_1)
        second = [data_2] if isinstance(data_2, str) else list(data_2)
        if len(first) == 1:
            first *= len(second)
        if len(first) != len(second):
            raise ValueError(f"data_1: must have 1 or {len(second)} texts, as data_2, got {len(first)}")
        if chat_template:
            raise ValueError("chat_template: must be given to LLM(), because all pairs use the same template")
        more = {**tokenization(tokenization_kwargs), **(pooling_params.body() if pooling_params else {})}
        return self._submit_texts("/score", [{"text_1": a, "text_2": b, **more} for a, b in zip(first, second)], scoring,
                                  use_tqdm, lora_request)

    def get_default_sampling_params(self) -> SamplingParams:
        """Returns the sampling parameters of generation_config.json."""
        return SamplingParams(**self._engine.info["default_sampling_params"])

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer(self._engine)

    def get_world_size(self, include_dp: bool = True) -> int:
        """Returns the number of ranks of all engines, or of one engine."""
        tensor, pipeline, data = self._ranks
        return tensor * pipeline * (data if include_dp else 1)

    def reset_prefix_cache(self, reset_running_requests: bool = False, reset_connector: bool = False) -> bool:
        """Drops cached prefixes that no running request uses."""
        self._engine.reset_prefix_cache()
        return True

    def stats(self) -> dict[str, int]:
        """Returns gauges and counters of the engine: running, waiting, blocks_used, generation_tokens .."""
        return self._engine.stats()

    def get_metrics(self) -> list[Metric]:
        """Returns the engine's metrics, with the names of the server's /metrics."""
        return read_metrics(self._engine.metrics())

    def sleep(self, level: int = 1, mode: str = "abort") -> None:
        """Frees memory until wake_up(). Requires LLM(enable_sleep_mode=True). Level 1 frees the KV cache; level 2 also
        frees the weights, which wake_up() loads again. In every mode, first waits for a running call."""
        check_sleep_mode(mode)
        with self._batches.lock:
            self._engine.sleep(level)

    def wake_up(self, tags: Optional[list[str]] = None) -> bool:
        """Accepts requests again. tags: must be None, since weights and cache wake up together."""
        check_wake_tags(tags)
        self._engine.wake_up()
        return True

    def start_profile(self, profile_prefix: Optional[str] = None, *, delay_iterations: Optional[int] = None,
                      max_iterations: Optional[int] = None) -> None:
        """Begins a trace of the engine's steps. Requires LLM(profiler_config={"profiler": "torch",
        "torch_profiler_dir": "traces"}). max_iterations: number of steps until the end of the trace; 0: no limit."""
        self._engine.start_profile(profile_session(profile_prefix, delay_iterations, max_iterations))

    def stop_profile(self) -> None:
        """Ends the trace. Its file is in that folder, for ui.perfetto.dev or chrome://tracing."""
        self._engine.stop_profile()

    def close(self) -> None:
        """Frees the model's memory. Do not use the object afterwards."""
        self._engine.close()

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _values_for_each(self, params: ParamsForEach, lora: LoraForEach, priority: PriorityForEach,
                         count: int) -> Any:
        """Returns parameters, adapter and priority of each prompt."""
        if params is None:
            params = self.get_default_sampling_params()
        return zip(_for_each("sampling_params", params, count), _for_each("lora_request", lora, count),
                   _for_each("priority", priority, count))

    def _job(self, body: dict, text: Optional[str], n: int, lora: Optional[LoRARequest], priority: Optional[int]) -> Job:
        body.update(self._adapters.body(lora))
        if priority is not None:
            body["priority"] = priority
        return Job(lambda request: self._engine.submit(request, body, stream=False),
                   lambda request: Assembly(self._engine, str(request), text, n, lora=lora,
                                            body=body))

    def _queue(self, jobs: list[Job]) -> list[str]:
        first = len(self._queued)
        self._queued += [(str(first + i), job) for i, job in enumerate(jobs)]
        return [name for name, _ in self._queued[first:]]

    def _generate(self, jobs: list[Job], use_tqdm: Any) -> list[RequestOutput]:
        generated = self._engine.stats()["generation_tokens"]
        outputs = self._batches.run(jobs, use_tqdm)
        if self._saves_blocks:
            self._wait_saved(generated)
        return outputs

    def _wait_saved(self, generated: int) -> None:
        """Waits until the prompts' KV blocks are saved in the folder, so that another process can load them, as with
        vLLM's connector. generated: the engine's count of output tokens before the batch."""
        deadline = time.monotonic() + _SAVE_SECONDS_MAX
        while time.monotonic() < deadline:
            stats = self._engine.stats()
            idle = stats["generation_tokens"] > generated and stats["running"] + stats["waiting"] == 0
            if idle and not any(m.value for m in self.get_metrics() if m.name == "vllm:kv_transfer_held_blocks"):
                return
            time.sleep(0.002)

    def _read(self, route: str, prompts: list[Any], params: PoolingParamsForEach, read: Callable[[dict], Any],
              use_tqdm: Any, lora: LoraForEach, more: dict) -> list[PoolingRequestOutput]:
        each = _for_each("pooling_params", params, len(prompts))
        # Lists keep the number of rows; base64 is faster.
        fields = {**({} if route == "/classify" or read is rows else {"encoding_format": "base64"}), **more}
        return self._submit_texts(route, [{"input": prompt_of(prompt)[0], **fields, **(p.body() if p else {})}
                                          for prompt, p in zip(prompts, each)], read, use_tqdm, lora)

    def _submit_texts(self, route: str, bodies: list[dict], read: Callable[[dict], Any], use_tqdm: Any,
                      lora: LoraForEach) -> list[PoolingRequestOutput]:
        for body, adapter in zip(bodies, _for_each("lora_request", lora, len(bodies))):
            body.update(self._adapters.body(adapter))
        return self._batches.run([Job(lambda request, body=body: self._engine.submit_texts(request, route, body),
                                      lambda request: Reading(str(request), read)) for body in bodies], use_tqdm)
