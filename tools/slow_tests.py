#!/usr/bin/env python3
"""Lists the slowest cases of the last `ctest --preset release`, then the slowest tests with all their parameters.

Usage: slow_tests.py [COUNT]. Times are wall-clock times, so other load makes them longer.
"""
import argparse
import collections
import pathlib
import re

LOG = pathlib.Path(__file__).resolve().parents[1] / "build/release/Testing/Temporary/LastTest.log"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=30, metavar="COUNT")
    count = parser.parse_args().count
    if not LOG.exists():
        parser.error(f"{LOG} is missing: run ctest --preset release first")
    cases = re.findall(r"^\[ +OK \] ([^\s,]+).*\((\d+) ms\)$", LOG.read_text(errors="replace"), re.M)
    tests = collections.Counter()
    for name, ms in cases:
        tests[re.sub(r"(\.[^/]*)/.*", r"\1", name)] += int(ms)
    for name, ms in sorted(cases, key=lambda case: -int(case[1]))[:count]:
        print(f"{int(ms) / 1000:8.1f} s  {name}")
    print(f"{sum(tests.values()) / 1000:8.1f} s  all {len(cases)} cases")
    for name, ms in tests.most_common(count):
        print(f"{ms / 1000:8.1f} s  {name}")


if __name__ == "__main__":
    main()
