"""Measures the engines of engines/ on this machine, format by format. Writes a table, a picture and all figures.

    python machine.py DIR --octavo build/release/octavo [--llama-server PROGRAM] [--threads N] [--rounds 3] [--formats "8 bits" ..]

DIR has the models of MODELS and, in DIR/env/ENGINE, a virtual environment for each engine. Both may miss entries: the table says "not measured".
Results are DIR/table.md, DIR/table.png and DIR/table.json. A later run replaces only its --formats and --engines. All engines of a run and format
are loaded at the same time: if memory is short, start several runs with different --engines.
llama-server must have code for this processor. Debian's package llama.cpp-tools has code for each x86 processor since 2006, and chooses at start.

How to make the models, all of one Hugging Face folder DIR/bf16 (models.py):

    python models.py llama-3.2-1b DIR/bf16
    python models.py gguf DIR/bf16 DIR/Q8_0.gguf Q8_0        the same with Q4_0 and BF16
    optimum-cli export openvino -m DIR/bf16 --task text-generation-with-past --weight-format int8 DIR/ov-int8
    optimum-cli export openvino -m DIR/bf16 --task text-generation-with-past --weight-format int4 --group-size 128 --ratio 1.0 DIR/ov-int4
    python -m onnxruntime_genai.models.builder -i DIR/bf16 -o DIR/ort-int4 -p int4 -e cpu -c DIR/cache --extra_options int4_accuracy_level=4
    (the same for int8)
    llama-quantize DIR/BF16.gguf DIR/Q4_K_M.gguf Q4_K_M      the same with IQ4_XS
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
from pathlib import Path

import plot
from compare import Workload, compare
from models import tensor_shapes

# format: {entry: model in DIR and flags}
MODELS = {
    "bf16": {
        "octavo": "bf16",
        "llama.cpp": "BF16.gguf",
        "openvino": "ov-fp16",
        "vllm": "bf16",
        "mistral.rs": "bf16",
    },
    "8 bits": {
        "octavo": "Q8_0.gguf",
        "octavo:int8": "bf16 --quantization int8",
        "llama.cpp": "Q8_0.gguf",
        "ik_llama.cpp": "Q8_0.gguf",
        "openvino": "ov-int8",
        "openvino:GGUF": "Q8_0.gguf",
        "onnxruntime": "ort-int8",
        "mistral.rs": "Q8_0.gguf",
    },
    "4 bits": {
        "octavo": "Q4_0.gguf",
        "octavo:int4": "bf16 --quantization int4",
        "llama.cpp": "Q4_0.gguf",
        "ik_llama.cpp": "Q4_0.gguf",
        "openvino": "ov-int4",
        "openvino:GGUF": "Q4_0.gguf",
        "onnxruntime": "ort-int4",
        "mistral.rs": "Q4_0.gguf",
    },
    "Q4_K_M": {
        "octavo": "Q4_K_M.gguf",
        "llama.cpp": "Q4_K_M.gguf",
        "ik_llama.cpp": "Q4_K_M.gguf",
    },
    "IQ4_XS": {
        "octavo": "IQ4_XS.gguf",
        "llama.cpp": "IQ4_XS.gguf",
        "ik_llama.cpp": "IQ4_XS.gguf",
    },
}
# Bits of one weight, with its share of the scales. The last two files mix formats, and these are the means for Qwen3-0.6B.
BITS = {"bf16": 16, "8 bits": 8.5, "4 bits": 4.5, "Q4_K_M": 5.2, "IQ4_XS": 4.9}
WORKLOADS = [
    Workload("prefill_512", 1, 512, 1, "prefill"),
    Workload("decode_32", 1, 32, 32, "decode"),
    Workload("concurrent_16", 16, 64, 16, "output"),
]


class Roofline:
    """Compares tokens per second with three limits of this machine: reads of memory, products of bf16, products of int8."""

    def __init__(self, octavo: str, folder: Path, threads: int) -> None:
        command = [octavo, "bench", "ops", "--json", "--cpu-threads", str(threads), "--filter", "norm"]
        self.machine = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        del self.machine["cases"]
        shapes = {n: s for n, s in tensor_shapes(json.loads((folder / "config.json").read_text())).items() if len(s) == 2}
        self.weights = sum(map(math.prod, shapes.values()))
        self.head = math.prod(shapes["model.embed_tokens.weight"])

    def shares(self, workload: Workload, format: str, rate: float) -> dict[str, float]:
        """Returns the share of each limit that `rate` reaches. A prompt reads the weights once and has one row of logits. The operations of
        attention do not count."""
        layers = self.weights - self.head
        if workload.figure == "prefill":
            steps, operations = rate / workload.prompt, rate * 2 * layers
        else:
            steps = rate / workload.count
            prompts = workload.prompt / workload.tokens if workload.figure == "output" else 0
            operations = rate * 2 * (self.weights + layers * prompts)
        read = steps * self.weights * BITS[format] / 8 / self.machine["bytes_per_second"]
        kind, peak = ("bf16", self.machine["bf16_flops"]) if format == "bf16" else ("int8", self.machine["int8_ops"])
        return {"read": read, kind: operations / peak if peak else 0}


def cell(roofline: Roofline, workload: Workload, format: str, rates: list[float]) -> str:
    """Returns the median, the spread, and the limit that is nearest."""
    rate = statistics.median(rates)
    limit, share = max(roofline.shares(workload, format, rate).items(), key=lambda item: item[1])
    return f"{rate:.4g} ({min(rates):.4g} to {max(rates):.4g}), {limit} {share:.2f}"


def table(roofline: Roofline, results: dict) -> str:
    machine = roofline.machine
    lines = [
        f"Limits of this machine: reads {machine['bytes_per_second'] / 1e9:.1f} GB/s; peaks: bf16 {machine['bf16_flops'] / 1e9:.0f} GFLOP/s, "
        f"int8 {machine['int8_ops'] / 1e9:.0f} GOP/s. Tokens per second: median of the rounds, smallest and largest round, and the nearest limit "
        "with the share of it that the median reaches.",
        "",
        "| format | engine | " + " | ".join(w.name.replace("_", " ") for w in WORKLOADS) + " | ready, s | peak, GB | version and flags |",
        "|---|---|" + "---|" * len(WORKLOADS) + "---:|---:|---|",
    ]  # fmt: skip
    for format, result in results.items():
        for name, about in result["engines"].items():
            cells = [
                cell(roofline, w, format, rates) if (rates := result["workloads"][w.name].get(name)) else "" for w in WORKLOADS
            ]
            about = (
                ["", "", f"not measured: {about['error']}".replace("|", "/")]
                if "error" in about
                else [f"{about['ready']:.1f}", f"{about['bytes'] / 1e9:.1f}", about["about"]]
            )
            lines.append("| " + " | ".join([format, name, *cells, *about]) + " |")
    return "\n".join(lines) + "\n"


def arguments(servers: dict[str, str], folder: Path, name: str, model: str) -> list[str] | None:
    """Returns the model, the program of a server, and the flags of an entry. Returns None if the model is missing."""
    file, *flags = model.split()
    if not (folder / file).exists():
        return None
    server = servers.get(name.split(":")[0])
    return [str(folder / file), *([server] if server else []), *flags]


def merge(old: dict | None, new: dict, missing: dict, names: list[str]) -> dict:
    """Returns the results of a format: those of the new run, and those of earlier runs for other engines, in the order of `names`."""
    old = old or {"engines": {}, "workloads": {w.name: {} for w in WORKLOADS}}
    engines = missing | old["engines"] | new["engines"]
    kept = {name: {n: rates for n, rates in of.items() if n not in new["engines"]} for name, of in old["workloads"].items()}
    rates = {name: kept[name] | of for name, of in new["workloads"].items()}
    return {"engines": {n: engines[n] for n in names if n in engines}, "workloads": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--octavo", required=True)
    parser.add_argument("--llama-server", default="llama-server")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--engines", nargs="+", help="only these entries")
    args = parser.parse_args()
    file = args.folder / "table.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    servers = {"octavo": args.octavo, "llama.cpp": args.llama_server}
    for format in args.formats:
        models = {name: arguments(servers, args.folder, name, model) for name, model in MODELS[format].items()}
        missing = {name: {"error": f"{args.folder.name}/{MODELS[format][name].split()[0]} is missing"} for name in models if not models[name]}
        wanted = {name: model for name, model in models.items() if model and (not args.engines or name in args.engines)}
        measured = compare(wanted, WORKLOADS, args.rounds, args.threads, args.folder / "env")
        results[format] = merge(results.get(format), measured, missing, list(MODELS[format]))
        file.write_text(json.dumps(results, indent=1) + "\n")
    roofline = Roofline(args.octavo, args.folder / "bf16", args.threads)
    text = table(roofline, results)
    (args.folder / "table.md").write_text(text)
    plot.draw(results, args.folder / "table.png")
    print(text)


if __name__ == "__main__":
    main()
