"""Octavo: LLM inference and serving. `LLM` runs a model in this process; the `octavo` command serves one."""

from octavo._library import VERSION as __version__
from octavo._library import InvalidInput, OctavoError, ResourceExhausted
from octavo.async_llm import AsyncEngineArgs, AsyncLLM
from octavo.llm import LLM
from octavo.outputs import CompletionOutput, Logprob, RequestOutput
from octavo.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

__all__ = ["AsyncEngineArgs", "AsyncLLM", "CompletionOutput", "InvalidInput", "LLM", "Logprob", "OctavoError",
           "RequestOutput", "RequestOutputKind", "ResourceExhausted", "SamplingParams", "StructuredOutputsParams",
           "__version__"]
