"""Octavo: LLM inference and serving. `LLM` runs a model in this process; the `octavo` command serves one."""

from octavo._library import VERSION as __version__
from octavo._library import InvalidInput, OctavoError, ResourceExhausted
from octavo.async_llm import AsyncLLM
from octavo.beam_search import BeamSearchOutput, BeamSearchParams, BeamSearchSequence
from octavo.engine_args import AsyncEngineArgs, EngineArgs, FlexibleArgumentParser
from octavo.llm import LLM
from octavo.outputs import CompletionOutput, Logprob, RequestOutput
from octavo.pooling import (ClassificationOutput, EmbeddingOutput, PoolingOutput, PoolingParams, PoolingRequestOutput,
                            ScoringOutput)
from octavo.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

__all__ = ["AsyncEngineArgs", "AsyncLLM", "BeamSearchOutput", "BeamSearchParams", "BeamSearchSequence",
           "ClassificationOutput", "CompletionOutput", "EmbeddingOutput", "EngineArgs", "FlexibleArgumentParser",
           "InvalidInput", "LLM", "Logprob", "OctavoError", "PoolingOutput", "PoolingParams", "PoolingRequestOutput",
           "RequestOutput", "RequestOutputKind", "ResourceExhausted", "SamplingParams", "ScoringOutput",
           "StructuredOutputsParams", "__version__"]
