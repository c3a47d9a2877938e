"""Configurations in the form of vLLM's examples."""

from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass
class KVTransferConfig:
    """LLM(kv_transfer_config=..): where KV blocks go to and come from. The fields of `octavo serve --kv-transfer-config`."""
    kv_connector: Optional[str] = None
    kv_role: Optional[str] = None
    kv_connector_extra_config: dict[str, Any] = field(default_factory=dict)
    engine_id: Optional[str] = None
    kv_connector_module_path: Optional[str] = None
