"""Sampling parameters of a request: the fields and defaults of vLLM's SamplingParams."""

import copy
import enum
import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Optional, Union

# Above any context length. The engine reduces it to the remaining context.
_UNLIMITED = 2**31 - 1


class RequestOutputKind(enum.Enum):
    CUMULATIVE = 0  # each output has the whole text so far
    DELTA = 1  # each output has only the new text
    FINAL_ONLY = 2  # one output, at the end


@dataclass
class StructuredOutputsParams:
    """Constraint on the output's text; set exactly one field."""
    json: Optional[Union[str, dict]] = None  # a JSON Schema
    regex: Optional[str] = None
    choice: Optional[list[str]] = None
    grammar: Optional[str] = None
    json_object: Optional[bool] = None
    disable_any_whitespace: Optional[bool] = None
    disable_additional_properties: Optional[bool] = None
    whitespace_pattern: Optional[str] = None
    structural_tag: Optional[str] = None

    def body(self) -> dict[str, Any]:
        out = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if isinstance(out.get("json"), str):
            out["json"] = json.loads(out["json"])
        return {name: value for name, value in out.items() if value is not False}


@dataclass
class GuidedDecodingParams(StructuredOutputsParams):
    """StructuredOutputsParams with its earlier name. The fields below have no effect, since there is one grammar
    engine."""
    backend: Optional[str] = None
    backend_was_auto: bool = False
    disable_fallback: bool = False

    def body(self) -> dict[str, Any]:
        out = super().body()
        for name in ("backend", "backend_was_auto", "disable_fallback"):
            out.pop(name, None)
        return out

    @staticmethod
    def from_optional(**given: Any) -> "Optional[GuidedDecodingParams]":
        """Returns None if no field is set."""
        return GuidedDecodingParams(**given) if any(value is not None for value in given.values()) else None


@dataclass
class RepetitionDetectionParams:
    """Ends an output that repeats a pattern of tokens."""
    max_pattern_size: int = 0  # tokens; 0: off
    min_pattern_size: int = 0
    min_count: int = 0  # number of repetitions that end the output


@dataclass
class SamplingParams:
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: Optional[int] = None
    stop: Optional[Union[str, list[str]]] = None
    stop_token_ids: Optional[list[int]] = None
    ignore_eos: bool = False
    max_tokens: Optional[int] = 16  # None: up to the end of the context
    min_tokens: int = 0
    logprobs: Optional[int] = None
    prompt_logprobs: Optional[int] = None
    # Token ids whose log-probabilities RequestOutput.prompt_token_id_logprobs reports: row i as predictions of prompt
    # token prompt_logprob_start + i + 1. -1 is padding.
    prompt_logprob_token_ids: Optional[list[list[int]]] = None
    prompt_logprob_start: Optional[int] = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    truncate_prompt_tokens: Optional[int] = None
    logit_bias: Optional[dict[int, float]] = None
    allowed_token_ids: Optional[list[int]] = None
    bad_words: Optional[list[str]] = None
    structured_outputs: Optional[StructuredOutputsParams] = None
    guided_decoding: Optional[StructuredOutputsParams] = None  # earlier name of structured_outputs
    logprob_token_ids: Optional[list[int]] = None
    thinking_token_budget: Optional[int] = None
    repetition_detection: Optional[RepetitionDetectionParams] = None
    detokenize: bool = True
    stream_interval: Optional[int] = None
    # {"kv_transfer_params": {..}}: KV blocks to keep for another engine, or to fetch
    extra_args: Optional[dict[str, Any]] = None

    def __post_init__(self) -> None:
        if self.guided_decoding is not None:
            if self.structured_outputs is not None:
                raise ValueError("guided_decoding: cannot be combined with structured_outputs: set only one of the two")
            self.structured_outputs, self.guided_decoding = self.guided_decoding, None
        if self.top_k == -1:
            self.top_k = 0
        for name in self.extra_args or {}:
            if name != "kv_transfer_params":
                raise ValueError(f"extra_args: {name!r} is not supported, only 'kv_transfer_params'")

    @staticmethod
    def from_optional(**given: Any) -> "SamplingParams":
        """Makes parameters. None means the default."""
        return SamplingParams(**{name: value for name, value in given.items() if value is not None})

    def clone(self) -> "SamplingParams":
        return copy.deepcopy(self)

    def body(self, chat: bool) -> dict[str, Any]:
        """Returns fields for a body of /v1/chat/completions or /v1/completions. Includes every field for which the
        model may have a default, so that the value here applies."""
        out = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        for name in ("output_kind", "logprobs", "structured_outputs", "logit_bias", "detokenize", "stream_interval",
                     "extra_args"):
            out.pop(name, None)
        if chat and self.prompt_logprob_token_ids is not None:
            raise ValueError("prompt_logprob_token_ids: LLM.chat() cannot report them: render the chat to token ids, "
                             "and call LLM.generate()")
        if self.prompt_logprob_token_ids is not None:
            out["prompt_logprob_token_ids"] = [[int(token) for token in row] for row in self.prompt_logprob_token_ids]
        out.update(self.extra_args or {})
        if self.repetition_detection is not None:
            out["repetition_detection"] = asdict(self.repetition_detection)
        out["max_tokens"] = _UNLIMITED if self.max_tokens is None else self.max_tokens
        if self.logprobs is not None:
            out.update({"logprobs": True, "top_logprobs": self.logprobs} if chat else {"logprobs": self.logprobs})
        if self.structured_outputs is not None:
            out["structured_outputs"] = self.structured_outputs.body()
        if self.logit_bias is not None:
            out["logit_bias"] = {str(token): bias for token, bias in self.logit_bias.items()}
        return out
