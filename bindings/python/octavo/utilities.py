"""Small functions that vLLM's examples import."""

import gc
import socket
import uuid
from typing import Any

from octavo._library import VERSION as __version__  # noqa: F401


class _Platform:
    """The CPU or GPU that the engine has chosen."""
    device_type = "cpu"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("is_"):
            return lambda: name == "is_cpu"
        raise AttributeError(f"current_platform has no {name}: LLM(device=..) chooses the device")


current_platform = _Platform()


def cleanup_dist_env_and_memory(shutdown_ray: bool = False) -> None:
    """Frees engines without a reference."""
    gc.collect()


def random_uuid() -> str:
    return uuid.uuid4().hex


def get_ip() -> str:
    """Returns the address of this host in its network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 1))  # sends no packet
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def get_open_port() -> int:
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def print_embeddings(embeddings: list[float], prefix: str = "Embeddings") -> None:
    print(f"{prefix}: {embeddings[:4]}.. ({len(embeddings)} numbers)")
