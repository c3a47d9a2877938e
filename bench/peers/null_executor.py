"""A vLLM executor whose steps take no time, so that a benchmark measures only the server. tests/soak/serving.py starts it:

PYTHONPATH=bench/peers VLLM_TARGET_DEVICE=cpu vllm serve models/demo --distributed-executor-backend null_executor.NullExecutor
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import torch
from vllm.v1.executor.abstract import Executor
from vllm.v1.kv_cache_interface import FullAttentionSpec
from vllm.v1.outputs import ModelRunnerOutput

TOKEN = 300


class NullExecutor(Executor):
    """Returns the same token for each sequence in every step, immediately. The KV cache has a size, but no memory."""

    def _init_executor(self) -> None:
        self.unread: dict[str, int] = {}  # number of prompt tokens that are not computed yet

    def determine_available_memory(self) -> list[int]:
        return [1 << 30]

    def get_kv_cache_specs(self) -> list[dict[str, Any]]:
        return [{"layer": FullAttentionSpec(block_size=16, num_kv_heads=1, head_size=32, dtype=torch.bfloat16)}]

    def get_supported_kv_cache_layouts(self) -> list[list[str]]:
        return [["LBHNC"]]

    @property
    def supported_tasks(self) -> tuple[str, ...]:
        return ("generate",)

    def supports_draft_weight_updates(self) -> bool:
        return False

    def collective_rpc(self, method: Any, *_: Any, **__: Any) -> list[Any]:
        return []

    def execute_model(self, scheduler_output: Any, non_block: bool = False) -> Any:
        for new in scheduler_output.scheduled_new_reqs:
            self.unread[new.req_id] = len(new.prompt_token_ids)
        ids, tokens = list(scheduler_output.num_scheduled_tokens), []
        for name, count in scheduler_output.num_scheduled_tokens.items():
            self.unread[name] -= count
            tokens.append([TOKEN] if self.unread[name] <= 0 else [])
        for name in scheduler_output.finished_req_ids:
            self.unread.pop(name, None)
        output = ModelRunnerOutput(ids, {name: i for i, name in enumerate(ids)}, tokens)
        if not non_block:
            return output
        future: Future[ModelRunnerOutput] = Future()
        future.set_result(output)
        return future

    def check_health(self) -> None:
        pass
