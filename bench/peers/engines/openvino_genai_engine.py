"""OpenVINO GenAI's pipeline with continuous batching. The model is a folder that optimum-intel wrote."""

from __future__ import annotations

import os
import time

import numpy as np
import openvino
import openvino_genai

from engines import SEQUENCES


class Engine:
    def __init__(self, model: str, threads: int) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_batched_tokens = 4096
        scheduler.max_num_seqs = SEQUENCES
        scheduler.cache_size = 2  # GB
        properties = {"INFERENCE_NUM_THREADS": threads}
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU", properties)
        self.requests = 0
        self.about = f"openvino-genai {openvino_genai.__version__}, continuous batching, max_num_batched_tokens 4096"

    def pid(self) -> int:
        return os.getpid()

    def run(self, prompts: list[list[int]], tokens: int, shared: int) -> tuple[float, float]:
        config = openvino_genai.GenerationConfig(max_new_tokens=tokens, ignore_eos=True, do_sample=False)
        began, first = time.perf_counter(), 0.0
        handles = []
        for prompt in prompts:
            self.requests += 1
            ids = openvino.Tensor(np.array([prompt], np.int64))
            handles.append(self.pipeline.add_request(self.requests, ids, config))
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            if not first and any(handle.can_read() for handle in handles):
                first = time.perf_counter() - began
        return first, time.perf_counter() - began
