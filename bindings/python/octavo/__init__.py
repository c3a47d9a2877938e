"""Octavo: LLM inference and serving. `LLM` runs a model in this process, the `octavo` command serves one, and
`octavo.grammar` compiles grammars and computes token masks without a model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from octavo import vllm_paths

if TYPE_CHECKING:
    from octavo._library import VERSION as __version__
    from octavo._library import InvalidInput, OctavoError, ResourceExhausted
    from octavo.adapters import LoRARequest
    from octavo.async_llm import AsyncLLM, AsyncLLMEngine
    from octavo.beam_search import BeamSearchOutput, BeamSearchParams, BeamSearchSequence
    from octavo.engine_args import AsyncEngineArgs, EngineArgs, FlexibleArgumentParser
    from octavo.llm import LLM
    from octavo.llm_engine import LLMEngine
    from octavo.outputs import CompletionOutput, Logprob, RequestOutput, RequestStateStats
    from octavo.pooling import (ClassificationOutput, ClassificationRequestOutput, EmbeddingOutput,
                                EmbeddingRequestOutput, PoolingOutput, PoolingParams, PoolingRequestOutput,
                                ScoringOutput, ScoringRequestOutput)
    from octavo.prompts import PromptType, TextPrompt, TokensPrompt
    from octavo.sampling_params import (GuidedDecodingParams, RequestOutputKind, SamplingParams,
                                        StructuredOutputsParams)

# A module is imported when one of its names is first used. So octavo.grammar does not load the engine's library.
_MODULES = {
    "_library": ["InvalidInput", "OctavoError", "ResourceExhausted"],
    "adapters": ["LoRARequest"],
    "async_llm": ["AsyncLLM", "AsyncLLMEngine"],
    "beam_search": ["BeamSearchOutput", "BeamSearchParams", "BeamSearchSequence"],
    "engine_args": ["AsyncEngineArgs", "EngineArgs", "FlexibleArgumentParser"],
    "llm": ["LLM"],
    "llm_engine": ["LLMEngine"],
    "outputs": ["CompletionOutput", "Logprob", "RequestOutput", "RequestStateStats"],
    "pooling": ["ClassificationOutput", "ClassificationRequestOutput", "EmbeddingOutput", "EmbeddingRequestOutput",
                "PoolingOutput", "PoolingParams", "PoolingRequestOutput", "ScoringOutput", "ScoringRequestOutput"],
    "prompts": ["PromptType", "TextPrompt", "TokensPrompt"],
    "sampling_params": ["GuidedDecodingParams", "RequestOutputKind", "SamplingParams", "StructuredOutputsParams"],
}
vllm_paths.install()
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted([*_MODULE_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("octavo._library").VERSION
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'octavo' has no attribute {name!r}")
    return getattr(import_module(f"octavo.{_MODULE_OF[name]}"), name)


def __dir__() -> List[str]:
    return __all__
