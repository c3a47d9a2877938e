"""vLLM's module paths: `from octavo.lora.request import LoRARequest` for a program whose imports are changed by name alone."""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

# Path below vLLM's package: the modules here whose names it has.
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
_PACKAGES = {path[:at] for path in _PATHS for at, letter in enumerate(path) if letter == "."}


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
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        package, _, below = name.partition(".")
        if package != "octavo" or below not in _PATHS and below not in _PACKAGES:
            return None
        return ModuleSpec(name, _Path(_PATHS.get(below, [])), is_package=below in _PACKAGES)


def install() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
