"""LoRA adapters of requests: vLLM's LoRARequest."""

import threading
from dataclasses import dataclass
from typing import Any, Optional

from octavo._library import Engine


@dataclass(frozen=True)
class LoRARequest:
    """An adapter for a request: PEFT's folder, or its name on the hub. Equal names mean the same adapter."""
    lora_name: str
    lora_int_id: int = 1
    lora_path: str = ""
    base_model_name: Optional[str] = None
    load_inplace: bool = False  # load the adapter again
    is_3d_lora_weight: bool = False  # no effect: all of PEFT's formats of experts are read

    def __post_init__(self) -> None:
        if self.lora_int_id < 1:
            raise ValueError(f"lora_int_id: must be at least 1, got {self.lora_int_id}")
        if not self.lora_path:
            raise ValueError("lora_path: must be the path of an adapter, got ''")

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, LoRARequest) and self.lora_name == other.lora_name

    def __hash__(self) -> int:
        return hash(self.lora_name)

    @property
    def name(self) -> str:
        return self.lora_name

    @property
    def path(self) -> str:
        return self.lora_path


class Adapters:
    """The adapters that an engine has loaded."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._lock = threading.Lock()
        self._paths: dict[str, str] = {}  # by name

    def body(self, request: Optional[LoRARequest]) -> dict[str, Any]:
        """Returns the request fields that select the adapter. Loads the adapter if needed."""
        if request is None:
            return {}
        with self._lock:
            path = str(request.lora_path)
            if request.load_inplace or self._paths.get(request.lora_name) != path:
                self._engine.load_adapter(request.lora_name, path)
                self._paths[request.lora_name] = path
        return {"model": request.lora_name}
