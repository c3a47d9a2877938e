#!/usr/bin/env bash
# Formats the lines of C++ that changed since the branch left main (on main: in the last commit), with
# .clang-format. Unchanged lines stay as they are.
#   tools/format.sh           changes the files
#   tools/format.sh --check   changes nothing, prints the differences, and fails if there are any
set -euo pipefail
cd "$(dirname "$0")/.."
base=$(git merge-base HEAD main 2>/dev/null || true)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=HEAD^; fi
if ! git rev-parse -q --verify "$base" >/dev/null; then echo "no history to compare with"; exit; fi
# tests/requirements.txt installs them in .venv.
formatter=(.venv/bin/git-clang-format --binary .venv/bin/clang-format --extensions cc,h,cu,cuh)
if [ "${1:-}" = --check ]; then
  "${formatter[@]}" --diff "$base" -- src bindings tests || { echo "tools/format.sh formats these lines" >&2; exit 1; }
else
  "${formatter[@]}" --force "$base" -- src bindings tests
fi
