#!/usr/bin/env python3
"""Counts the instructions of every operator with callgrind, and compares them with bench/instructions.txt.

    instructions.py [--program build/release/op_instructions] [--write]

Counts do not depend on other load of the machine. Counts of matrix tiles ("tiles: ...") are those of an emulation of
the tiles, on a processor with AVX-512-BF16; on other processors they are omitted. Exit code 1: an operator needs over
3 % more instructions than the file says. --write writes the new counts, to be committed with the change that explains
them.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TILES = "tiles: "  # prefix of their names
WRITTEN = ROOT / "bench" / "instructions.txt"
MORE = 1.03


def count(program: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out", program]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        counts = {}
        for path in sorted(Path(folder).iterdir(), key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)]):
            text = path.read_text()
            if name := re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M):
                counts[name[1]] = int(re.search(r"^totals: (\d+)$", text, re.M)[1])
    return counts


def count_tiles(program: Path) -> dict[str, int] | None:
    """Returns None if the processor does not support it."""
    counted = subprocess.run([program, "--tiles"], capture_output=True, text=True)
    if counted.returncode != 0 and "lacks" in counted.stderr:
        return None
    counted.check_returncode()
    return parse(counted.stdout)


def parse(text: str) -> dict[str, int]:
    return {name: int(number) for number, name in (line.split(maxsplit=1) for line in text.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/op_instructions")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    counts = count(arguments.program)
    tiles = count_tiles(arguments.program)
    counts |= tiles or {}
    if arguments.write:
        if tiles is None:
            sys.exit("instructions: --write is for a processor with AVX-512-BF16, which counts those on tiles, too")
        WRITTEN.write_text("".join(f"{number:12}  {name}\n" for name, number in counts.items()))
        return
    written = parse(WRITTEN.read_text())
    if tiles is None:
        print("instructions: none on tiles: this processor lacks AVX-512-BF16")
        written = {name: number for name, number in written.items() if not name.startswith(TILES)}
    grown = []
    for name in sorted(written.keys() | counts.keys()):
        if name not in counts or name not in written:
            grown.append(f"{name}: {'not counted' if name not in counts else 'not written there'}")
        elif counts[name] > MORE * written[name]:
            grown.append(f"{name}: {counts[name]}, {counts[name] / written[name] - 1:+.1%}")
        elif counts[name] * MORE < written[name]:
            print(f"{name}: {counts[name]}, {counts[name] / written[name] - 1:+.1%}; write it down")
    if grown:
        sys.exit("\n".join(["instructions: beyond bench/instructions.txt:", *grown]))
    print(f"instructions: {len(counts)} operators within {MORE - 1:.0%} of bench/instructions.txt")


if __name__ == "__main__":
    main()
