"""Methods of vLLM's LLM and AsyncLLM without support. Each raises an error that says why."""

from typing import Any

_NO_PYTHON = "the model is not a Python object"
_NO_TRAINING = "weights do not change while the engine runs; make a new LLM, or serve and POST /update_weights_from_disk"

_REASONS = {
    "apply_model": _NO_PYTHON,
    "collective_rpc": _NO_PYTHON,
    "save_sharded_state": "ranks read their part of the checkpoint",
    "init_weight_transfer_engine": _NO_TRAINING,
    "shutdown_weight_transfer_engine": _NO_TRAINING,
    "start_weight_update": _NO_TRAINING,
    "start_draft_weight_update": _NO_TRAINING,
    "update_weights": _NO_TRAINING,
    "finish_weight_update": _NO_TRAINING,
    "update_weight_version": _NO_TRAINING,
    "get_weight_version": _NO_TRAINING,
    "release_kv_cache_memory": "sleep(level=1) frees the KV cache",
    "reset_mm_cache": "encoded images belong to their requests",
}


_INTERNALS = {
    "llm_engine": "octavo.LLMEngine takes requests one by one",
    "model_config": "LLM.get_default_sampling_params() and LLM.get_tokenizer() are what there is of it",
}


def refuses(cls: type) -> type:
    """Adds the methods and attributes without support to a class."""
    for name, reason in _INTERNALS.items():
        setattr(cls, name, property(_attribute(cls.__name__, name, reason)))
    for name, reason in _REASONS.items():
        if not hasattr(cls, name):
            setattr(cls, name, _method(cls.__name__, name, reason))
    return cls


def _attribute(owner: str, name: str, reason: str) -> Any:
    def refuse(self: Any) -> Any:
        raise AttributeError(f"{owner}.{name}: not supported: {reason}")
    return refuse


def _method(owner: str, name: str, reason: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{owner}.{name}: not supported: {reason}")
    refuse.__name__ = name
    return refuse
