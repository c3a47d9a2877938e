"""Engine options: keyword arguments, vLLM's EngineArgs, or a command line."""

import argparse
import dataclasses
import enum
import json
import sys
from pathlib import Path
from typing import Any, Optional

from octavo._library import option_list


def engine_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that are set, as JSON values: the flags of `octavo serve` with _ for -."""
    out = {name: _plain(name, value) for name, value in options.items() if value is not None}
    if isinstance(out.get("hf_token"), bool):
        del out["hf_token"]  # default: the token of `hf auth login`
    return out


def _plain(name: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field: _plain(name, v) for field, v in dataclasses.asdict(value).items() if v not in (None, {})}
    if isinstance(value, dict):
        return {str(key): _plain(name, v) for key, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(name, v) for v in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{name}: {type(value).__name__} is not supported: must be a number, a text, a list or a dictionary")


class FlexibleArgumentParser(argparse.ArgumentParser):
    """Accepts --max_model_len for --max-model-len."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args([self._dashed(word) for word in words], namespace)

    @staticmethod
    def _dashed(word: str) -> str:
        name, equals, value = word.partition("=")
        return name.replace("_", "-") + equals + value if word.startswith("--") else word


def _value(text: str) -> Any:
    """Returns a number, a list or a dictionary if the text is one, otherwise the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if value is None or isinstance(value, bool) else value


class EngineArgs:
    """A model and options: the flags of `octavo serve` with _ for -, as attributes."""

    def __init__(self, model: Optional[str] = None, **options: Any):
        self.__dict__.update(options, model=model)

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """Adds every option to a parser: LLM(**vars(parser.parse_args()))."""
        group = parser.add_argument_group("engine")
        for option in option_list():
            names = ["--" + option["name"].replace("_", "-")] + ([option["short"]] if option["short"] else [])
            help_text = option["help"].replace("%", "%%")
            if option["switch"]:
                group.add_argument(*names, action=argparse.BooleanOptionalAction, default=None, help=help_text)
            else:
                given = _value(option["default"]) if option["default"] else None
                group.add_argument(*names, type=_value, default=given, nargs="+" if option["many"] else None, help=help_text)
        return parser

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> "EngineArgs":
        """Returns the options in a parser's results."""
        names = {option["name"] for option in option_list()}
        return cls(**{name: value for name, value in vars(args).items() if name in names})


class AsyncEngineArgs(EngineArgs):
    """Options for AsyncLLM.from_engine_args()."""
