"""vLLM's output classes."""

from dataclasses import dataclass, field
from typing import Any, Optional, Union

from octavo._library import Engine, OctavoError, Piece, Position
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

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class RequestMetrics:
    """Seconds after the request's arrival; 0: not reported by the engine."""
    scheduled: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0


@dataclass
class RequestOutput:
    request_id: str
    prompt: Optional[str]
    prompt_token_ids: list[int]
    prompt_logprobs: Optional[list[Optional[dict[int, Logprob]]]]
    outputs: list[CompletionOutput]
    finished: bool
    num_cached_tokens: int = 0
    metrics: Optional[RequestMetrics] = None


def _by_token(engine: Engine, position: Position) -> dict[int, Logprob]:
    token, logprob, rank, top = position
    out = {token: Logprob(logprob, rank, engine.token_text(token))}
    for place, (other, other_logprob) in enumerate(top, 1):
        out.setdefault(other, Logprob(other_logprob, place, engine.token_text(other)))
    return out


class Assembly:
    """Joins the pieces of one request into its RequestOutput."""

    def __init__(self, engine: Engine, request_id: str, prompt: Optional[str], n: int,
                 kind: RequestOutputKind = RequestOutputKind.FINAL_ONLY):
        self._engine = engine
        self._delta = kind is RequestOutputKind.DELTA
        self._answers = [CompletionOutput(index) for index in range(n)]
        self._output = RequestOutput(request_id, prompt, [], None, self._answers, False)

    def take(self, piece: Piece) -> RequestOutput:
        """The output so far, or with DELTA the piece's part. Raises OctavoError if the engine failed."""
        if piece.finish_reason == "error":
            raise OctavoError(piece.error)
        out = self._output
        if piece.prompt_token_ids is not None:
            out.prompt_token_ids = piece.prompt_token_ids
            if out.prompt is None:
                out.prompt = self._engine.decode(piece.prompt_token_ids)
        if piece.prompt_logprobs is not None:
            out.prompt_logprobs = [None, *(_by_token(self._engine, p) for p in piece.prompt_logprobs)]
        out.num_cached_tokens = piece.cached_tokens
        out.finished = piece.last
        if piece.last:
            out.metrics = RequestMetrics(*piece.times)
        if self._delta:
            answer = CompletionOutput(piece.index)
            self._append(answer, piece)
            return RequestOutput(**{**vars(out), "outputs": [answer]})
        self._append(self._answers[piece.index], piece)
        return out

    def _append(self, answer: CompletionOutput, piece: Piece) -> None:
        answer.text += piece.text
        answer.token_ids += piece.token_ids
        answer.finish_reason, answer.stop_reason = piece.finish_reason, piece.stop_reason
        if piece.logprobs is None:
            return
        answer.logprobs = (answer.logprobs or []) + [_by_token(self._engine, p) for p in piece.logprobs]
        answer.cumulative_logprob = (answer.cumulative_logprob or 0.0) + sum(p[1] for p in piece.logprobs)


def prompt_of(prompt: Any) -> tuple[Any, Optional[str]]:
    """The text or ids to send for a prompt in vLLM's forms (a text, token ids, {"prompt": ..}, {"prompt_token_ids": ..}),
        and its text."""
    if not isinstance(prompt, dict):
        return prompt, prompt if isinstance(prompt, str) else None
    if not ({"prompt", "prompt_token_ids"} & prompt.keys()):
        raise ValueError('prompt: a dictionary needs "prompt" or "prompt_token_ids"')
    given = prompt["prompt_token_ids"] if prompt.get("prompt_token_ids") is not None else prompt["prompt"]
    return given, prompt.get("prompt")


def request_body(prompt: Any, params: Any) -> tuple[dict[str, Any], Optional[str]]:
    """The body of /v1/completions for a prompt, and its text."""
    given, text = prompt_of(prompt)
    return {"prompt": given, **params.body(chat=False)}, text
