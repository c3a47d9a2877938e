"""ik_llama.cpp, a fork of llama.cpp with an older interface. Its wheel uses AVX2 only: build its source package for this processor."""

from __future__ import annotations

import importlib.metadata

from engines import llama_cpp_engine


class Engine(llama_cpp_engine.Engine):
    def library(self):
        import ik_llama_cpp._ctypes_api as api

        self.about = f"ik-llama-cpp-python {importlib.metadata.version('ik-llama-cpp-python')}, native, n_ubatch {llama_cpp_engine.BATCH}"
        api.llama_backend_init()
        return api

    def adjust(self, context) -> None:
        context.flash_attn = True

    def clear(self) -> None:
        self.llama.llama_kv_cache_clear(self.context)

    def share(self, prompts: int, length: int) -> None:
        raise NotImplementedError("the bindings of ik_llama.cpp cannot copy sequences")
