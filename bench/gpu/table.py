"""Makes a table and a JSON file from the results that tools/gpu_check.sh wrote into a folder: ops.json, decode_*.json, engine_*.json,
torch.json, torch_ops.json and *.status.

    python table.py FOLDER      prints the table, writes FOLDER/result.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from workloads import rates


def read(file: Path) -> dict:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


def operators(ops: dict, limits: dict, torch: dict) -> list[dict]:
    """Adds to each case its fraction of the copy bandwidth and of cuBLASLt's peak, and PyTorch's time divided by Octavo's time."""
    rows = []
    for case in ops.get("cases", []):
        row = {
            "what": f"{case['operation']}, {case['shape']}, {case['format']}",
            "microseconds": case["seconds"] * 1e6,
            "gigabytes_per_second": case["bytes"] / case["seconds"] / 1e9,
            "teraflops": case["operations"] / case["seconds"] / 1e12,
            "share_of_copy": case["share_of_bandwidth"],
        }
        if "bf16_flops" in limits:
            row["share_of_peak"] = case["operations"] / case["seconds"] / limits["bf16_flops"]
        if row["what"] in torch:
            row["times_torch"] = torch[row["what"]] / case["seconds"]
        rows.append(row)
    return rows


def decoding(steps: list[dict]) -> list[dict]:
    """Adds to each step of Llama-3-8B its read bandwidth, as a fraction of the copy bandwidth."""
    return [
        {
            "what": f"step of {step['batch_size']} sequences of {step['input_len']} tokens"
            + (f" after a common prefix of {prefix}" if (prefix := step.get("prefix_len")) else ""),
            "microseconds": step["seconds"] / step["steps"] * 1e6,
            "gigabytes_per_second": step["bytes_per_second"] / 1e9,
            "share_of_copy": step["share_of_read_bandwidth"],
        }
        for step in steps
    ]


def engines(engine: dict, torch: dict) -> list[dict]:
    rows = []
    for name, seconds in engine.items():
        shape = name.split(",")[0]
        plain, other = rates(engine.get(shape, {})), rates(torch.get(shape, {}))
        for what, tokens in rates(seconds).items():
            row = {"what": f"{name}: {what}", "tokens_per_second": tokens}
            if name != shape and what in plain:
                row["of_plain_octavo"] = tokens / plain[what]
            if name == shape and what in other:
                row |= {"torch_tokens_per_second": other[what], "times_torch": tokens / other[what]}
            rows.append(row)
    return rows


def text(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns] + [
        [f"{row[c]:.3g}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns] for row in rows
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def main() -> None:
    folder = Path(sys.argv[1])
    ops, torch, torch_ops = (read(folder / f"{name}.json") for name in ("ops", "torch", "torch_ops"))
    engine = {name: times for file in sorted(folder.glob("engine_*.json")) for name, times in read(file).items()}
    steps = [step for file in sorted(folder.glob("decode_*.json"), reverse=True) for step in read(file).get("batches", [])]
    status = {file.stem: file.read_text().split()[1] for file in sorted(folder.glob("*.status"))}
    limits = torch_ops.get("limits", {})
    result = {
        "status": status,
        "device": ops.get("device"),
        "octavo_copy_bytes_per_second": ops.get("bytes_per_second"),
        "limits": limits,
        "operators": operators(ops, limits, torch_ops),
        "decoding": decoding(steps),
        "engines": engines(engine, torch),
    }
    (folder / "result.json").write_text(json.dumps(result, indent=1))
    for rows in (result["operators"], result["decoding"], result["engines"]):
        if rows:
            print(text(rows), end="\n\n")
    print(json.dumps({key: result[key] for key in ("device", "octavo_copy_bytes_per_second", "limits", "status")}, indent=1))


if __name__ == "__main__":
    main()
