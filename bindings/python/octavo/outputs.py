"""vLLM's output classes."""

import time
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from octavo._library import Engine, OctavoError, Piece, Position
from octavo.adapters import LoRARequest
from octavo.embeds import encode_embeds
from octavo.sampling_params import RequestOutputKind


@dataclass
class Logprob:
    logprob: float
    rank: Optional[int] = None  # 1: the most likely token
    decoded_token: Optional[str] = None


@dataclass
class CompletionOutput:
    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: Optional[float] = None
    logprobs: Optional[list[dict[int, Logprob]]] = None
    finish_reason: Optional[str] = None  # stop, length, repetition, abort
    stop_reason: Union[int, str, None] = None
    lora_request: Optional[LoRARequest] = None

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class RequestStateStats:
    """Counts and times of a request. arrival_time is a Unix time; fields *_ts are times of time.monotonic(), 0 before
    the event."""
    num_generation_tokens: int = 0
    num_preemptions: int = 0
    arrival_time: float = 0.0
    queued_ts: float = 0.0
    scheduled_ts: float = 0.0
    first_token_ts: float = 0.0
    last_token_ts: float = 0.0
    first_token_latency: float = 0.0  # seconds from the arrival
    is_corrupted: bool = False  # always False: a request with NaN logits ends with an error


@dataclass
class RequestOutput:
    request_id: str
    prompt: Optional[str]
    prompt_token_ids: list[int]
    prompt_logprobs: Optional[list[Optional[dict[int, Logprob]]]]
    outputs: list[CompletionOutput]
    finished: bool
    num_cached_tokens: int = 0
    metrics: Optional[RequestStateStats] = None
    lora_request: Optional[LoRARequest] = None
    kv_transfer_params: Optional[dict[str, Any]] = None  # the engine keeps the KV blocks for another engine
    encoder_prompt: Optional[str] = None
    encoder_prompt_token_ids: Optional[list[int]] = None
    # Log-probabilities of SamplingParams.prompt_logprob_token_ids, with the same shape; -inf for padding
    prompt_token_id_logprobs: Optional[list[list[float]]] = None


def _by_token(engine: Engine, position: Position) -> dict[int, Logprob]:
    token, logprob, rank, top = position
    out = {token: Logprob(logprob, rank, engine.token_text(token))}
    for place, (other, other_logprob) in enumerate(top, 1):
        out.setdefault(other, Logprob(other_logprob, place, engine.token_text(other)))
    return out


class Assembly:
    """Joins the pieces of one request into its RequestOutput."""

    def __init__(self, engine: Engine, request_id: str, prompt: Optional[str], n: int,
                 kind: RequestOutputKind = RequestOutputKind.FINAL_ONLY, lora: Optional[LoRARequest] = None,
                 body: Optional[dict[str, Any]] = None):
        """body: the request, which decides what the log-probabilities of the prompt are."""
        self._engine = engine
        self._body = body or {}
        self._delta = kind is RequestOutputKind.DELTA
        self._answers = [CompletionOutput(index, lora_request=lora) for index in range(n)]
        stats = RequestStateStats(arrival_time=time.time(), queued_ts=time.monotonic())
        self._output = RequestOutput(request_id, prompt, [], None, self._answers, False, metrics=stats, lora_request=lora)

    def take(self, piece: Piece) -> RequestOutput:
        """Returns the output so far, or with DELTA only the piece's part. Raises OctavoError if the engine has failed.
        """
        if piece.finish_reason == "error":
            raise OctavoError(piece.error)
        out = self._output
        if piece.prompt_token_ids is not None:
            out.prompt_token_ids = piece.prompt_token_ids
            if out.prompt is None and piece.prompt_token_ids:
                out.prompt = self._engine.decode(piece.prompt_token_ids)
        if piece.prompt_logprobs is not None:
            self._take_prompt(piece.prompt_logprobs)
        out.num_cached_tokens = piece.cached_tokens
        out.finished = piece.last
        out.kv_transfer_params = piece.details.get("kv_transfer_params")
        self._count(out.metrics, piece)
        if self._delta:
            answer = CompletionOutput(piece.index, lora_request=out.lora_request)
            self._append(answer, piece)
            return RequestOutput(**{**vars(out), "outputs": [answer]})
        self._append(self._answers[piece.index], piece)
        return out

    def _take_prompt(self, positions: list[Position]) -> None:
        scored = "prompt_logprob_token_ids" in self._body
        if scored:
            self._output.prompt_token_id_logprobs = [[logprob for _, logprob in top] for *_, top in positions if top]
            positions = [(token, logprob, rank, []) for token, logprob, rank, _ in positions]
        if not scored or "prompt_logprobs" in self._body:
            self._output.prompt_logprobs = [None, *(_by_token(self._engine, p) for p in positions)]

    def _count(self, stats: RequestStateStats, piece: Piece) -> None:
        stats.num_generation_tokens += len(piece.token_ids)
        stats.num_preemptions += piece.details.get("num_preemptions", 0)
        if piece.finish_reason is None:
            return
        stats.scheduled_ts, stats.first_token_ts, stats.last_token_ts = (
            stats.queued_ts + seconds if seconds else 0.0 for seconds in piece.times)
        stats.first_token_latency = piece.times[1]

    def _append(self, answer: CompletionOutput, piece: Piece) -> None:
        answer.text += piece.text
        answer.token_ids += piece.token_ids
        answer.finish_reason, answer.stop_reason = piece.finish_reason, piece.stop_reason
        if piece.logprobs is None:
            return
        answer.logprobs = (answer.logprobs or []) + [_by_token(self._engine, p) for p in piece.logprobs]
        answer.cumulative_logprob = (answer.cumulative_logprob or 0.0) + sum(p[1] for p in piece.logprobs)


_NOT_IN_PROMPTS = {
    "multi_modal_data": "LLM.chat() takes images, videos and sound, as the server does",
    "mm_processor_kwargs": "LLM(mm_processor_kwargs=..) sets them for all requests",
    "prompt_embeds": "only LLM.generate() takes them",
    "encoder_prompt": "the text of an encoder is the prompt itself",
}


def prompt_of(prompt: Any) -> tuple[Any, Optional[str]]:
    """Returns what to send for a prompt in one of vLLM's forms (a text, token ids, {"prompt": ..}, {"prompt_token_ids":
    ..}): text or ids, and the text."""
    if not isinstance(prompt, dict):
        return prompt, prompt if isinstance(prompt, str) else None
    for name, reason in _NOT_IN_PROMPTS.items():
        if prompt.get(name) is not None:
            raise ValueError(f"prompt: {name} is not supported: {reason}")
    if not ({"prompt", "prompt_token_ids"} & prompt.keys()):
        raise ValueError('prompt: a dictionary needs "prompt" or "prompt_token_ids"')
    given = prompt["prompt_token_ids"] if prompt.get("prompt_token_ids") is not None else prompt["prompt"]
    return given, prompt.get("prompt")


def tokenization(kwargs: Optional[dict[str, Any]]) -> dict[str, Any]:
    """Returns the request fields for tokenization_kwargs."""
    for name in kwargs or {}:
        if name not in ("add_special_tokens", "truncate_prompt_tokens", "truncation_side"):
            raise ValueError(f"tokenization_kwargs: {name} is not supported, only add_special_tokens, truncate_prompt_tokens and "
                             "truncation_side")
    return dict(kwargs or {})


def request_body(prompt: Any, params: Any, kwargs: Optional[dict[str, Any]] = None) -> tuple[dict[str, Any], Optional[str]]:
    """Returns the body of /v1/completions for a prompt, and the prompt's text. kwargs: tokenization_kwargs."""
    embeds = prompt.get("prompt_embeds") if isinstance(prompt, dict) else None
    if embeds is not None:
        prompt = {"prompt": "", **{name: value for name, value in prompt.items() if name != "prompt_embeds"}}
    given, text = prompt_of(prompt)
    salt = {"cache_salt": prompt["cache_salt"]} if isinstance(prompt, dict) and prompt.get("cache_salt") else {}
    more = {} if embeds is None else {"prompt_embeds": encode_embeds(embeds)}
    return {"prompt": given, **params.body(chat=False), **tokenization(kwargs), **salt, **more}, text if embeds is None else None
