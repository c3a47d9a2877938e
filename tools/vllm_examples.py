#!/usr/bin/env python3
"""Runs vLLM's offline examples with `octavo` instead of `vllm`. Reports for each: runs, refused (with the reason),
fails, or needs.

    vllm_examples.py CHECKOUT [--only NAME] [--library build/release/liboctavo.so.1] [--markdown]

CHECKOUT: vLLM's repository, with the folder examples/. Models of this repository replace the names of the hub.
"Refused" means that Octavo names a feature that it does not have. "Needs" means that this machine lacks something (a
download, a GPU, ray, torch).
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS_MAX = 180

# Runs in the example's process: `vllm` is `octavo`, and names of the hub are the demo models.
PRELUDE = """
import importlib, runpy, sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import octavo
from octavo import _library

class Alias(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        if name != "vllm" and not name.startswith("vllm."):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = "octavo" + module.__name__[len("vllm"):]
        source = importlib.import_module(name)
        module.__dict__.update({key: value for key, value in vars(source).items() if not key.startswith("__")})
        if name == "octavo":
            module.__getattr__ = lambda attribute: getattr(octavo, attribute)

sys.meta_path.insert(0, Alias())

create = _library.Engine.__init__

def create_demo(self, options):
    options = dict(options)
    named = str(options.get("model", ""))
    if "/" in named and not named.startswith(("/", ".")):
        options["model"] = MODEL
        options.setdefault("kv_cache_memory_bytes", "64M")
    draft = options.get("speculative_config")
    if isinstance(draft, dict) and "/" in str(draft.get("model", "")):
        options["speculative_config"] = {**draft, "model": DRAFT}
    create(self, options)

_library.Engine.__init__ = create_demo

try:
    import huggingface_hub
    huggingface_hub.snapshot_download = lambda *arguments, **options: ADAPTER
except ImportError:
    hub = type(sys)("huggingface_hub")
    hub.snapshot_download = lambda *arguments, **options: ADAPTER
    sys.modules["huggingface_hub"] = hub
sys.argv = [EXAMPLE, *sys.argv[1:]]
runpy.run_path(EXAMPLE, run_name="__main__")
"""

# Flags that an example needs. The others need none.
ARGUMENTS = {
    "context_extension_offline.py": [],
    "data_parallel_offline.py": ["-dp=2", "--model=ibm-research/PowerMoE-3b"],
    "llm_engine_example.py": ["--model=facebook/opt-125m"],
    "reset_kv_offline.py": ["--model=facebook/opt-125m"],
    "spec_decode_offline.py": ["--method=draft_model", "--draft-model=a/draft", "--num-spec-tokens=3", "--num-prompts=2"],
    "run_one_batch_offline.py": ["--profile=both", "--profile-dir=traces"],
    "generate.py": ["--max-tokens=8"],
    "chat.py": ["--max-tokens=8"],
    "prefix_caching_flexkv.py": ["--model=a/model"],
}
# Models of tests/data/encoders for examples of pooling models. The others use models/demo.
MODELS = {
    "classify.py": "bert-classifier",
    "classification_with_lora_offline.py": "bert-classifier",
    "embed.py": "roberta",
    "embed_jina_embeddings_v3_offline.py": "jina_v3",
    "embed_matryoshka_fy_offline.py": "qwen3-embedder",
    "late_chunking_offline.py": "colbert",
    "multi_vector_retrieval_offline.py": "colbert",
    "ner_offline.py": "bert-tokens",
    "qwen3_reranker_offline.py": "qwen3-word-reranker",
    "score.py": "bert-reranker",
    "sequence_reward_offline.py": "qwen2-reward",
    "token_reward_offline.py": "internlm2-reward",
    "using_template_offline.py": "bert-reranker",
}
# Example that runs first, in the same folder.
BEFORE = {"decode_example.py": "prefill_example.py"}
# Errors that mean that the machine lacks something.
MISSING = re.compile(r"No module named '(?!octavo)([\w.]+)'|(Connection|resolve|Max retries|NameResolution|offline mode)|(requests\.exceptions)")
REFUSED = re.compile(r"(octavo\._library\.(?:InvalidInput|OctavoError)|NotImplementedError|ValueError|ModuleNotFoundError|ImportError|AttributeError): (.*)")
OURS = re.compile(r"No module named 'octavo|octavo[/\\](?!_library)|bindings/python/octavo|cannot import name .* from 'vllm|"
                  r"is not supported|not supported:|there is no such option")


def offline_examples(checkout):
    """Yields the examples that make an engine in their process."""
    for path in sorted((checkout / "examples").rglob("*.py")):
        text = path.read_text(errors="replace")
        makes_engine = re.search(r"\bLLM\(|LLMEngine\.from|AsyncLLM\.from|AsyncLLMEngine\.from|AsyncEngineArgs\(", text)
        if "vllm" in text and makes_engine and "streamlit" not in text:
            yield path


def model_of(name, folder):
    if name not in MODELS:
        return ROOT / "models/demo"
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    from test_embeddings import folder_of
    made = Path(folder) / "a-model"
    made.mkdir(exist_ok=True)
    return folder_of(MODELS[name], made)


def run(path, folder, library):
    demo = ROOT / "models"
    constants = f"EXAMPLE={str(path)!r}\nMODEL={str(model_of(path.name, folder))!r}\nDRAFT={str(demo / 'demo-draft')!r}\nADAPTER={str(demo / 'demo-lora/formal')!r}\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "bindings/python"), "OCTAVO_LIBRARY": str(library), "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run([sys.executable, "-c", constants + PRELUDE, *ARGUMENTS.get(path.name, [])], cwd=folder, env=environment,
                              capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return 1, f"no end after {SECONDS_MAX} s"
    return done.returncode, done.stderr


def verdict(code, stderr):
    if code == 0:
        return "runs", ""
    if "Engine did not properly pause" in stderr:
        return "needs", "a slower model: this one ends before the pause"
    lines = [line.strip() for line in stderr.strip().splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if re.match(r"[\w.]*(Error|Input|Exception|Exit)\b|usage:|error:", line)), lines[-1] if lines else "")
    long = re.search(r"prompt is too long: (\d+) tokens|tokens for this model, got (\d+)", last)
    if long:
        return "needs", f"a model with a context of {long[1] or long[2]} tokens"
    if token := re.search(r'classifier_from_token has ("\w+"), which is no token', last):
        return "needs", f"a tokenizer in which {token[1]} is a token"
    missing = MISSING.search(last)
    if missing:
        return "needs", missing[1] or "a download"
    named = REFUSED.search(last)
    if named and OURS.search(last + "\n".join(lines[-8:])):
        return "refused", named[2]
    return "fails", last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/liboctavo.so.1")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    counts = {}
    for path in offline_examples(args.checkout):
        if args.only not in str(path):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if path.name in BEFORE and (path.parent / BEFORE[path.name]).exists():
                run(path.parent / BEFORE[path.name], folder, args.library)
            outcome, reason = verdict(*run(path, folder, args.library))
        counts[outcome] = counts.get(outcome, 0) + 1
        name = path.relative_to(args.checkout / "examples")
        print(f"| `{name}` | {outcome} | {reason[:160]} |" if args.markdown else f"{outcome:8} {name}  {reason[:200]}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return counts.get("fails", 0) > 0


if __name__ == "__main__":
    sys.exit(main())
