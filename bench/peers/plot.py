"""Draws the results of compare.py: one panel per format, with each engine's tokens per second, relative to the best engine except Octavo.

python plot.py OUT.png "bf16=bf16.json" "8-bit=q8_0.json" ..
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLORS = {"octavo": "#c0392b", "llama.cpp": "#7f8c8d", "vllm": "#34679a", "transformers": "#c9a227"}
ABOUT = {"ready_seconds", "peak_bytes"}


def panel(axes, title: str, results: dict) -> None:
    workloads = [name for name in results if name not in ABOUT]
    engines = list(results["ready_seconds"])
    height = 0.8 / len(engines)
    for row, workload in enumerate(workloads):
        medians = {engine: statistics.median(figures) for engine, figures in results[workload].items()}
        best = max(value for engine, value in medians.items() if engine != "octavo")
        for i, (engine, value) in enumerate(medians.items()):
            at = row + i * height
            low, high = min(results[workload][engine]), max(results[workload][engine])
            spread = [[(value - low) / best], [(high - value) / best]]
            axes.barh(at, value / best, height, xerr=spread, color=COLORS[engine], label=engine if row == 0 else None)
            axes.text(max(value, high) / best + 0.03, at, f"{value:.0f}", va="center", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.7)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(workloads))], workloads, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("tokens a second, best peer = 1", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("results", nargs="+", help="TITLE=FILE.json")
    args = parser.parse_args()
    titles, files = zip(*(result.split("=", 1) for result in args.results))
    figure, all_axes = plt.subplots(1, len(files), figsize=(5 * len(files), 5), squeeze=False, constrained_layout=True)
    for axes, title, file in zip(all_axes[0], titles, files):
        panel(axes, title, json.loads(Path(file).read_text()))
    handles = {label: bar for axes in all_axes[0] for bar, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncol=len(handles), frameon=False)
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
