"""ONNX Runtime GenAI. All prompts of a workload have one length and are one batch. The model is a folder that its builder wrote."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import onnxruntime_genai


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        file = Path(model) / "genai_config.json"
        config = json.loads(file.read_text())
        config["model"]["decoder"]["session_options"]["intra_op_num_threads"] = threads
        file.write_text(json.dumps(config, indent=1))
        self.model = onnxruntime_genai.Model(model)
        self.about = f"onnxruntime-genai {onnxruntime_genai.__version__}, one static batch"

    def pid(self) -> int:
        return os.getpid()

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        began = time.perf_counter()
        length = len(prompts[0]) + tokens
        params = onnxruntime_genai.GeneratorParams(self.model)
        params.set_search_options(batch_size=len(prompts), min_length=length, max_length=length, do_sample=False)
        generator = onnxruntime_genai.Generator(self.model, params)
        generator.append_tokens(np.array(prompts, np.int32))
        generator.generate_next_token()
        first = time.perf_counter() - began
        while not generator.is_done():
            generator.generate_next_token()
        return first, time.perf_counter() - began
