"""Judges engines with a collection of real schemas: which schemas they compile, which instances they accept, and the
cost of their masks.

    python judge_schemas.py FOLDER VOCABULARY [--tool grammar_tool] [--engines octavo,llguidance,xgrammar] [--sample N]
        [--minutes N] [--limit SECONDS] [--report FILE]

FOLDER contains JSON files {"schema": .., "tests": [{"data": .., "valid": true}, ..]}, as collect_schemas.py writes
them. Each engine has its default mode, except that objects are open, as in the specification. Every instance is
written by json.dumps, divided into tokens, and read with a mask before each token, by each engine in turn. Times are
processor times. Each engine is a process. If it exceeds the limit for a schema, it is ended and started again for the
next one. Waiting for a first mask counts for the limit. Memory is the largest size of the process after any schema;
for the packages, minus the size of Python with the imported package before the engine was made.
"""

import argparse
import collections
import glob
import importlib
import json
import os
import random
import re
import time

from engine_process import EngineProcess
from engines import LLGuidance, Octavo, XGrammar, load_vocabulary


class Ours(Octavo):
    def pid(self):
        return self.process.pid

    def compile(self, text):
        answer = self.ask(op="new", kind="json_schema", text=text, whitespace=1, strict=False)
        return answer.get("error"), answer.get("us", 0.0)

    def read(self, tokens):
        self.restart()
        answer = self.ask(op="walk", tokens=tokens)
        return answer["end"], answer["masks"], answer["steps"], answer["late"]


class Package:
    """The two others, through their Python packages. Each call costs about a microsecond (llguidance: five) more than
    inside."""

    def pid(self):
        return os.getpid()

    def compile(self, text):
        begin = time.process_time_ns()
        try:
            self.open_schema(text)
            self.restart()
            problem = self.problem()
        except Exception as error:  # the packages raise many kinds
            problem = str(error) or "error"
        return problem, (time.process_time_ns() - begin) / 1e3

    def read(self, tokens):
        self.restart()
        times = []
        for token in tokens:
            begin = time.thread_time_ns()
            self.fill()
            times.append((time.thread_time_ns() - begin) / 1e3)
            if not self.accept(token):
                return False, times, [], 0
        return self.can_end(), times, [], 0


class Theirs(Package, XGrammar):
    def open_schema(self, text):
        self.grammar = self.compiler.compile_json_schema(text, strict_mode=False)

    def problem(self):
        return None

    def can_end(self):
        self.fill()
        return bool(self.buffer[0][self.eos // 32] >> (self.eos % 32) & 1)


class Guidance(Package, LLGuidance):
    def open_schema(self, text):
        self.grammar = self.l.LLMatcher.grammar_from_json_schema(text)

    def problem(self):
        return self.matcher.get_error() if self.matcher.is_error() else None

    def can_end(self):
        return self.matcher.is_accepting()


def reason_of(error):
    """Returns an error without the parts that differ between schemas."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|#\S*|\d[\d,]*", "_", error)[:110]


def percentiles(times):
    times.sort()
    return [times[min(len(times) - 1, int(len(times) * q))] if times else 0 for q in (0.5, 0.99, 0.999, 1.0)]


parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("vocabulary")
parser.add_argument("--tool", default="build/release/grammar_tool")
parser.add_argument("--engines", default="octavo")
parser.add_argument("--sample", type=int, default=0)
parser.add_argument("--minutes", type=float, help="starts no further schema after this number of minutes")
parser.add_argument("--limit", type=float, default=30, help="seconds of the processor that a schema may cost an engine")
parser.add_argument("--report", help="a line of JSON for each schema that is refused or misjudged, and each slow mask")
options = parser.parse_args()

tokens, eos, encode = load_vocabulary(options.vocabulary)
specials = set(range(eos, len(tokens)))
makers = {
    "octavo": lambda: Ours(options.tool, options.vocabulary),
    "xgrammar": lambda: Theirs([b"" if i in specials else t for i, t in enumerate(tokens)], eos),
    "llguidance": lambda: Guidance(tokens, specials, eos, encode),
}
engines = []
for name in options.engines.split(","):
    if name != "octavo":
        importlib.import_module(name)  # here, so that its imports do not count as the engine's memory
    engine = EngineProcess(makers[name], options.limit)
    engine.name = name
    engine.count, engine.reasons = collections.Counter(), collections.Counter()
    engine.masks, engine.first, engine.steps, engine.late = {}, {}, [], 0  # times in microseconds, by schema
    engines.append(engine)

files = sorted(glob.glob(os.path.join(options.folder, "**", "*.json"), recursive=True))
random.Random(7).shuffle(files)
report = open(options.report, "w", buffering=1) if options.report else None


def note(**line):
    if report:
        report.write(json.dumps(line) + "\n")


began = time.monotonic()
for path in files[: options.sample or None]:
    if options.minutes and time.monotonic() - began > options.minutes * 60:
        break
    case = json.load(open(path))
    text = json.dumps(case["schema"], ensure_ascii=False)
    instances = [(test["valid"], encode(json.dumps(test["data"], ensure_ascii=False))) for test in case["tests"]]
    for engine in engines:
        count = engine.count
        count["schemas"] += 1
        compiled = engine.call("compile", text)
        if not compiled:
            count["cut off"] += 1
            engine.first[path] = options.limit * 1e6
            note(engine=engine.name, file=path, error="cut off")
            continue
        error, compile_us = compiled
        if error:
            engine.reasons[reason_of(error)] += 1
            note(engine=engine.name, file=path, error=error)
            continue
        count["compiled"] += 1
        wrong = set()
        engine.masks[path] = []
        for index, (valid, ids) in enumerate(instances):
            reading = engine.call("read", ids)
            if not reading:
                count["cut off"] += 1
                wrong.add("cut off")
                note(engine=engine.name, file=path, test=index, error="cut off")
                break
            accepted, times, steps, late = reading
            engine.steps += steps
            engine.late += late
            if index == 0 and times:
                engine.first[path] = compile_us + times[0]
                if engine.first[path] > 50_000:
                    note(engine=engine.name, file=path, compile=compile_us, first=times[0])
            engine.masks[path] += times
            if accepted != valid:
                wrong.add("accepted" if accepted else "rejected")
                note(engine=engine.name, file=path, test=index, wrong="accepted" if accepted else "rejected",
                     at=len(times), of=len(ids), text=b"".join(tokens[t] for t in ids[: len(times)])[-60:].decode(errors="replace"))
            if times and max(times) > 1000:
                at = times.index(max(times))
                note(engine=engine.name, file=path, test=index, slow=max(times),
                     text=b"".join(tokens[t] for t in ids[:at])[-60:].decode(errors="replace"))
        count["right"] += not wrong
        for kind in wrong - {"cut off"}:
            count[kind] += 1

def times_of(engine, paths):
    """Returns the figures of a row for these schemas: times of masks, and of the first mask with its compilation."""
    all_masks = [us for path in paths for us in engine.masks.get(path, [])]
    masks, first = percentiles(all_masks), percentiles([engine.first[path] for path in paths if path in engine.first])
    mean = sum(all_masks) / max(1, len(all_masks))
    return " | ".join(f"{t:.1f}" for t in masks) + f" | {mean:.1f} | {first[0] / 1e3:.2f} | {first[1] / 1e3:.1f} | {first[3] / 1e3:.0f} |"


columns = "mask us p50 | p99 | p99.9 | max | mean | first mask ms p50 | p99 | max |"
print(f"| engine | schemas | compiled | right | valid rejected | invalid accepted | cut off | memory MB | {columns}")
print("| --- " * 16 + "|")
for engine in engines:
    c = engine.count
    print(f"| {engine.name} | {c['schemas']} | {c['compiled']} | {c['right']} | {c['rejected']} | {c['accepted']} | {c['cut off']} | "
          + f"{engine.memory_mb:.0f} | {times_of(engine, files)}")


def compare(title, pair, paths):
    print(f"\n| {title} | {columns}")
    print("| --- " * 9 + "|")
    for one in pair:
        print(f"| {one.name} | {times_of(one, paths)}")


for engine in engines[1:]:
    pair = (engines[0], engine)
    both = [path for path in files if all(path in one.masks and path in one.first for one in pair)]
    compare(f"the {len(both)} schemas that both compile", pair, both)
    for slow in pair:
        slowest = sorted(both, key=slow.first.get, reverse=True)[:100]
        compare(f"those {len(slowest)} of them whose first mask took {slow.name} longest", pair, slowest)
for engine in engines:
    if engine.steps:
        times = percentiles(engine.steps)
        print(f"{engine.name}: a step would spend on a mask us p50 {times[0]:.1f}, p99 {times[1]:.1f}, p99.9 {times[2]:.1f}, "
              f"max {times[3]:.1f}; {engine.late} of {len(engine.steps)} are left to the thread beside it")
    print(f"\nrefused by {engine.name}:")
    for reason, times in engine.reasons.most_common(25):
        print(f"{times:6}  {reason}")
