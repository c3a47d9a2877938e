"""vLLM's module paths, such as octavo.lora.request: a program only replaces the package's name in its imports."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

# vLLM module path (below its package) -> modules of octavo whose public names it re-exports.
_PATHS: dict[str, list[str]] = {
    "config.kv_transfer": ["config"],
    "config.pooler": ["config"],
    "distributed": ["utilities"],
    "distributed.parallel_state": ["utilities"],
    "engine.arg_utils": ["engine_args"],
    "engine.async_llm_engine": ["async_llm"],
    "engine.llm_engine": ["llm_engine"],
    "entrypoints.llm": ["llm"],
    "inputs": ["prompts"],
    "inputs.data": ["prompts"],
    "logprobs": ["outputs"],
    "lora.request": ["adapters"],
    "platforms": ["utilities"],
    "pooling_params": ["pooling"],
    "utils": ["engine_args", "utilities"],
    "utils.argparse_utils": ["engine_args"],
    "utils.network_utils": ["utilities"],
    "utils.print_utils": ["utilities"],
    "v1.engine.async_llm": ["async_llm"],
    "v1.engine.llm_engine": ["llm_engine"],
    "v1.metrics.reader": ["metrics"],
    "v1.metrics.stats": ["outputs"],
    "version": ["_library"],
}
# Paths for which Octavo has no module, including all paths below them.
_REFUSED = {
    "assets": "files of examples are not part of it",
    "benchmarks": "use the command octavo bench",
    "distributed.kv_transfer": "connectors are part of the program: LLM(kv_transfer_config=..) chooses one",
    "distributed.weight_transfer": "weights do not change while an engine runs",
    "model_executor": "models are part of the program, not Python code",
    "multimodal": "LLM.chat() takes images, videos and sound, as the server does",
    "transformers_utils": "use huggingface_hub or transformers",
    "v1.core": "the scheduler is part of the program",
    "v1.metrics.loggers": "LLM.get_metrics() and AsyncLLM.stats() have the figures",
    "v1.sample": "sampling is part of the program: see SamplingParams",
    "v1.worker": "workers are part of the program",
}
_PACKAGES = {path[:at] for path in [*_PATHS, *_REFUSED] for at, letter in enumerate(path) if letter == "."}


class _Path(Loader):
    def __init__(self, modules: list[str]):
        self._modules = modules

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        for name in self._modules:
            source: dict[str, Any] = vars(import_module(f"octavo.{name}"))
            module.__dict__.update({key: value for key, value in source.items() if not key.startswith("_")})


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, search: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        package, _, below = name.partition(".")
        if package == "octavo":
            for path, reason in _REFUSED.items():
                if below == path or below.startswith(path + "."):
                    raise ModuleNotFoundError(f"{name}: not supported: {reason}", name=name)
        if package != "octavo" or below not in _PATHS and below not in _PACKAGES:
            return None
        return ModuleSpec(name, _Path(_PATHS.get(below, [])), is_package=below in _PACKAGES)


def install() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
