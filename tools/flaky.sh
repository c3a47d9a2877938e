#!/usr/bin/env bash
# Runs the tests under conditions in which flaky tests fail: with four busy loops, and on one processor.
# Prints the failures of all rounds.
#
# Usage: tools/flaky.sh [ROUNDS [REGEX [FILE..]]]
#   ROUNDS  number of rounds of each kind (1)
#   REGEX   tests of ctest to run, as for ctest -R (all); "^$" runs none
#   FILE    files for pytest (tests/e2e); "none" runs none
#
# Each run's output is in build/flaky/.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."
rounds=${1:-1} regex=${2:-.} files=("${@:3}")
[ ${#files[@]} -gt 0 ] || files=(tests/e2e)
logs=build/flaky
rm -rf $logs
mkdir -p $logs

# run NAME COMMAND..: runs the command, with its output in NAME.log. Failures are counted at the end.
run() {
  local name=$1 begin=$SECONDS status=passed
  shift
  "$@" >"$logs/$name.log" 2>&1 || status=FAILED
  printf '%-16s %-6s %5d s\n' "$name" $status $((SECONDS - begin))
}

# suite NAME PREFIX..: runs both test programs, with the prefix before each command.
suite() {
  local name=$1
  shift
  [ "$regex" = '^$' ] || run "$name.ctest" "$@" ctest --preset release -j 2 -LE large -R "$regex"
  [ "${files[0]}" = none ] || run "$name.pytest" "$@" .venv/bin/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder "${files[@]}"
}

loops=()
trap '[ ${#loops[@]} -eq 0 ] || kill "${loops[@]}"' EXIT
for ((i = 1; i <= rounds; ++i)); do
  for _ in 1 2 3 4; do
    sh -c 'while :; do :; done' &
    loops+=($!)
  done
  suite "busy.$i"
  kill "${loops[@]}"
  loops=()
  suite "one.$i" taskset -c 0
done

echo "failures, with the number of runs in which each occurred:"
# The output of ctest contains the names of cases. Programs that crashed are in ctest's list.
failures=$(for log in "$logs"/*.log; do
  grep -hoE '^(\[  FAILED  \] [^ ,]+[./][^ ,]+|FAILED [^ ]+|ERROR [^ ]+)|[^ ]+ \((Failed|Timeout|SEGFAULT|Subprocess aborted)\)$' "$log" | sort -u || true
done | sort | uniq -c | sort -rn)
[ -z "$failures" ] && echo none && exit
echo "$failures"
exit 1
