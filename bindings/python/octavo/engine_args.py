"""Engine options in the form of vLLM's examples: a dataclass, or a command line."""

import argparse
import sys
from typing import Any, Callable, Optional

# Flags that add_cli_args() adds; Python programs can set every other flag of `octavo serve` too.
_FLAGS: dict[str, Callable[[str], Any]] = {
    "model": str, "dtype": str, "max-model-len": str, "max-num-seqs": int, "max-num-batched-tokens": str, "block-size": int,
    "gpu-memory-utilization": float, "kv-cache-dtype": str, "quantization": str, "seed": int, "runner": str, "revision": str,
    "tensor-parallel-size": int,
}
_SWITCHES = ("enforce-eager", "enable-prefix-caching", "trust-remote-code")


class FlexibleArgumentParser(argparse.ArgumentParser):
    """Accepts --max_model_len for --max-model-len."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args([self._dashed(word) for word in words], namespace)

    @staticmethod
    def _dashed(word: str) -> str:
        name, equals, value = word.partition("=")
        return name.replace("_", "-") + equals + value if word.startswith("--") else word


class EngineArgs:
    """A model and options: the flags of `octavo serve` with _ for -."""

    def __init__(self, model: Optional[str] = None, **options: Any):
        self.model, self.options = model, options

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """Adds flags to a parser; a missing flag is None, LLM's default: LLM(**vars(parser.parse_args()))."""
        group = parser.add_argument_group("engine")
        for name, kind in _FLAGS.items():
            group.add_argument(f"--{name}", type=kind)
        for name in _SWITCHES:
            group.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None)
        return parser


class AsyncEngineArgs(EngineArgs):
    """Options for AsyncLLM.from_engine_args()."""
