#!/usr/bin/env bash
# Serves a small real model (`octavo pull demo`; without a network, or with MODEL=models/demo, the model of
# the repository), sends one question over HTTP, prints the streamed answer and its timings, and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
octavo=build/release/octavo
port=${PORT:-8000}
question=${1:-"Tell me a short story."}
model=${MODEL:-$("$octavo" pull demo)} || { echo "serving the shipped model, which knows little" >&2; model=models/demo; }

log=$(mktemp)
"$octavo" serve "$model" --host 127.0.0.1 --port "$port" 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 200); do
  grep -q 'ready on' "$log" && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.05
done
cat "$log"
echo "> $question"
"$octavo" chat --url "http://127.0.0.1:$port" --max-tokens 200 --quick "$question"
