"""Configurations in the form of vLLM's examples: each is a dictionary, the JSON of an option of `octavo serve`."""

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass
class KVTransferConfig:
    """LLM(kv_transfer_config=..): the engines or stores from which KV blocks are loaded, and to which they are saved.
    The fields of `octavo serve --kv-transfer-config`."""
    kv_connector: Optional[str] = None
    kv_role: Optional[str] = None
    kv_connector_extra_config: dict[str, Any] = field(default_factory=dict)
    engine_id: Optional[str] = None
    kv_connector_module_path: Optional[str] = None


class AttentionConfig(dict):
    """LLM(attention_config=..)"""


class CompilationConfig(dict):
    """LLM(compilation_config=..)"""


class KVEventsConfig(dict):
    """LLM(kv_events_config=..)"""


class PoolerConfig(dict):
    """LLM(pooler_config=..)"""


class ProfilerConfig(dict):
    """LLM(profiler_config=..)"""


class SpeculativeConfig(dict):
    """LLM(speculative_config=..)"""


class StructuredOutputsConfig(dict):
    """LLM(structured_outputs_config=..)"""
