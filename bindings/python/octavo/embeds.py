"""Prompts as embeddings, for LLM(enable_prompt_embeds=True): a tensor becomes a safetensors file in base64."""

import base64
import json
from typing import Any

_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def encode_embeds(rows: Any) -> str:
    """Returns the field prompt_embeds for a tensor of torch or an array of numpy of shape [tokens, hidden size]:
    float32, float16 or bfloat16."""
    dtype = str(getattr(rows, "dtype", type(rows).__name__)).removeprefix("torch.")
    if dtype not in _TYPES:
        raise ValueError(f"prompt_embeds: must be a tensor or an array of {', '.join(_TYPES)}, got {dtype}")
    if hasattr(rows, "detach"):
        import torch

        data = rows.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    else:
        data = rows.tobytes()
    entry = {"dtype": _TYPES[dtype], "shape": list(rows.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({"prompt_embeds": entry}).encode()
    return base64.b64encode(len(header).to_bytes(8, "little") + header + data).decode()
