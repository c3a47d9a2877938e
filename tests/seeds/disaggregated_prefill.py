"""Prefill and decode apart, offline: two engines in two processes, with one folder of KV blocks between them.

    disaggregated_prefill.py MODEL FOLDER
"""
import sys
import time
from multiprocessing import Event, Process

from octavo import LLM, SamplingParams
from octavo.config import KVTransferConfig

MODEL, FOLDER = sys.argv[1:]

# Blocks have 16 tokens, so shorter prompts have no full block to share.
PROMPTS = [
    "Hello, my name is Mira, and I live in a small house beside the river, where my brother and I keep seven brown hens. My friend is",
    "The old lighthouse on the hill has a keeper who counts the ships that pass by night and writes them in a book. The keeper of it is",
]


def connector():
    return KVTransferConfig(kv_connector="SharedStorageConnector", kv_role="kv_both",
                            kv_connector_extra_config={"shared_storage_path": FOLDER, "load_always": True})


def run_prefill(prefill_done):
    llm = LLM(model=MODEL, kv_cache_memory_bytes="64M", kv_transfer_config=connector())
    llm.generate(PROMPTS, SamplingParams(temperature=0, top_p=0.95, max_tokens=1))
    prefill_done.set()  # the decode process can load the blocks now
    while True:  # keeps the engine until the other process has ended
        time.sleep(1)


def run_decode(prefill_done):
    llm = LLM(model=MODEL, kv_cache_memory_bytes="64M", kv_transfer_config=connector())
    prefill_done.wait()
    for output in llm.generate(PROMPTS, SamplingParams(temperature=0, top_p=0.95)):
        print(f"{output.num_cached_tokens} of {len(output.prompt_token_ids)}: {output.outputs[0].text!r}", flush=True)


if __name__ == "__main__":
    prefill_done = Event()
    prefill = Process(target=run_prefill, args=(prefill_done,))
    decode = Process(target=run_decode, args=(prefill_done,))
    prefill.start()
    decode.start()
    decode.join()
    prefill.terminate()
    prefill.join()
    sys.exit(decode.exitcode)
