"""Draws the results of machine.py: one panel per format, with each engine's tokens per second, relative to the best engine except Octavo.

python plot.py DIR/table.json OUT.png
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLORS = {
    "octavo": "#c0392b",
    "llama.cpp": "#7f8c8d",
    "ik_llama.cpp": "#b2babb",
    "openvino": "#2e86c1",
    "onnxruntime": "#7d3c98",
    "mistral.rs": "#ca6f1e",
    "vllm": "#1e8449",
    "transformers": "#c9a227",
}
HATCH = "///"  # second entry of an engine
COLUMNS = 3


def panel(axes, title: str, result: dict) -> None:
    workloads = {name: rates for name, rates in result["workloads"].items() if rates}
    entries = [name for name in result["engines"] if any(name in rates for rates in workloads.values())]
    height = 0.8 / len(entries)
    for row, rates in enumerate(workloads.values()):
        medians = {name: statistics.median(values) for name, values in rates.items()}
        best = max((value for name, value in medians.items() if not name.startswith("octavo")), default=1)
        for name, value in medians.items():
            at = row + entries.index(name) * height
            low, high = min(rates[name]), max(rates[name])
            spread = [[(value - low) / best], [(high - value) / best]]
            hatch = HATCH if ":" in name else None
            axes.barh(at, value / best, height, xerr=spread, color=COLORS[name.split(":")[0]], hatch=hatch, label=name if row == 0 else None)
            axes.text(high / best + 0.03, at, f"{value:.0f}", va="center", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.7)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(workloads))], workloads, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("tokens per second, best peer = 1", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(results: dict, out: Path) -> None:
    columns = min(COLUMNS, len(results))
    rows = math.ceil(len(results) / columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5 * columns, 4.5 * rows), squeeze=False, constrained_layout=True)
    for axes, (title, result) in zip(grid.flat, results.items()):
        panel(axes, title, result)
    for axes in grid.flat[len(results) :]:
        axes.axis("off")
    handles = {label: bar for axes in grid.flat for bar, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncol=5, frameon=False)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    draw(json.loads(args.results.read_text()), args.out)


if __name__ == "__main__":
    main()
