#!/usr/bin/env bash
# Checks that need an NVIDIA GPU. A call takes at most 8 minutes, and the next call continues after the last
# step. A failed step does not stop the others. Results are in build/gpu_check: the output of each step,
# table.txt and result.json. build/gpu_check.tgz contains all of them. Without a GPU, it stops at the first
# step that needs one, with exit code 3. Exit code 4 means that steps are left for another call.
#
#   tools/gpu_check.sh [--seconds N] [--again] [PART..]
#
# --seconds: time of a call (480). --again: also repeats passed steps. Parts (default: all):
#
#   tests          operators compared with the reference, model goldens, engines with and without graphs
#   sanitizer      compute-sanitizer's memcheck and racecheck of the operators
#   serve          a server with many streams
#   ranks          ranks that share the GPU: model goldens, and servers in every layout
#   guesses        draft tokens of every kind change no answer; their gain
#   ops            times of every operator
#   decode         times of a decoding step and its bytes, over batches and contexts, for a Llama-3-8B shape
#   engine         times of whole engines for Llama-3.2-1B and Llama-3-8B shapes, with and without graphs and overlap
#   torch          PyTorch's operators at the same shapes
#   torch_engine   workloads of whole engines in PyTorch, compiled
#
#   tools/gpu_check.sh pack
#
# builds, and packs programs, libraries, scripts and test data into build/gpu_check.tar.xz, for a machine
# that cannot build: unpack it anywhere, and run tools/gpu_check.sh there. It needs Python 3; decode, engine
# and torch need PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu_check
programs=(octavo kernels_test model_test engine_test draft_tokens_soak)
mkdir -p "$out"

build() {
  tools/install.sh cuda
  cmake --preset cuda >"$out/configure.log"
  cmake --build --preset cuda -j "${JOBS:-$(nproc)}" --target "${programs[@]}" >"$out/build.log" || { tail -40 "$out/build.log"; exit 1; }
}

if [ "${1:-}" = pack ]; then
  build
  place=build/pack/octavo_gpu
  rm -rf build/pack
  mkdir -p "$place/bin" "$place/build"
  # A script starts each program, so that only this program uses the libraries in its folder.
  for program in "${programs[@]}"; do
    strip -o "$place/bin/$program.bin" "build/cuda/$program"
    printf '#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH=$here exec "$here/%s.bin" "$@"\n' "$program" >"$place/bin/$program"
    chmod +x "$place/bin/$program"
  done
  # Copies all libraries except the C library, which belongs to the machine.
  (cd build/cuda && ldd "${programs[@]}") | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt)\.so' | xargs -I{} cp -L {} "$place/bin/"
  tar -cf - tools/gpu_check.sh bench/gpu bench/peers/models.py models/demo{,-draft,-eagle3} tests/data/{models,quantized,drafters,sound} |
    tar -xf - -C "$place"
  # Copies only those of the largest goldens that engine_test reads, so that the archive stays below 64 MB.
  (cd "$place" && du -s tests/data/models/* | awk '$1 > 330 { print $2 }' | grep -vE '/(gemma2|qwen3_next|deepseek_v32)$' | xargs rm -r)
  XZ_OPT=-9 tar -cJf build/gpu_check.tar.xz -C build/pack octavo_gpu
  rm -rf build/pack
  ls -l build/gpu_check.tar.xz
  exit
fi

seconds=480 again=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 && shift 2 ;;
    --again) again=1 && shift ;;
    *) break ;;
  esac
done
parts=("$@")
[ $# -gt 0 ] || parts=(tests sanitizer serve ranks guesses ops decode engine torch torch_engine)

if [ -x bin/octavo ]; then
  bin=bin
else
  bin=build/cuda
  build
fi

# The backend itself reports whether there is a device.
if ! "$bin/octavo" generate models/demo --device cuda --max-tokens 4 -p "One two three" >"$out/first_light.log" 2>&1; then
  cat "$out/first_light.log"
  echo "gpu_check: built for CUDA, but the backend could not start here; nothing ran on a GPU"
  exit 3
fi

python=python3
[ -x .venv/bin/python ] && .venv/bin/python -c 'import torch' 2>/dev/null && python=.venv/bin/python
failed=() left=()
# step NAME SECONDS COMMAND..: runs a step, with its output in NAME.log and its result in NAME.status. It
# starts only if the call has half of SECONDS left.
step() {
  local name=$1 limit=$2 begin=$SECONDS rest=$((seconds - SECONDS)) status=passed
  shift 2
  if [ -z "$again" ] && grep -qs ' passed ' "$out/$name.status"; then return; fi
  if [ "$rest" -lt $((limit / 2)) ]; then left+=("$name"); return; fi
  [ "$rest" -ge "$limit" ] || limit=$rest
  timeout "$limit" "$@" >"$out/$name.log" 2>&1 || {
    status=failed failed+=("$name")
    grep -E '^\[  FAILED' "$out/$name.log" | sort -u | head -40 || true
    tail -20 "$out/$name.log"
  }
  printf '%-20s %-7s %4d s\n' "$name" "$status" $((SECONDS - begin)) | tee "$out/$name.status"
}

# shards PROGRAM FILTER: runs a test program in parallel parts, one per processor, because the reference on
# the host takes most of the time.
shards() {
  local count status=0 parts=()
  count=$(nproc)
  for ((i = 0; i < count; ++i)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i "$1" --gtest_filter="$2" >"$out/shard_$i.log" 2>&1 &
    parts+=($!)
  done
  for part in "${parts[@]}"; do wait "$part" || status=1; done
  cat "$out"/shard_*.log
  rm "$out"/shard_*.log
  return $status
}

# Tests a server on a separate port: the load, and the end after a signal.
serve() {
  local port=18731 server answered=0
  "$bin/octavo" serve models/demo --device cuda --host 127.0.0.1 --port $port --max-num-seqs 64 &
  server=$!
  for _ in $(seq 600); do
    (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 $server || return
    sleep 0.1
  done
  "$bin/octavo" bench serve --base-url "http://127.0.0.1:$port" --num-prompts 256 --max-concurrency 64 \
    --random-input-len 100 --random-output-len 60 --result-dir "$out" --result-filename serve.json --save-result || answered=1
  kill $server
  wait $server
  return $answered
}
# Prints a greedy answer of a server with the given flags.
answer() {
  local port=18732 server status=0
  "$bin/octavo" serve models/demo --device cuda --dtype float32 --host 127.0.0.1 --port $port --max-num-seqs 4 "$@" &
  server=$!
  python3 - $port <<'PYTHON' || status=1
import json, sys, time, urllib.request
body = json.dumps({"prompt": "Once upon a time", "max_tokens": 64, "temperature": 0}).encode()
for _ in range(600):
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v1/completions", body, {"Content-Type": "application/json"})
        print("answer:", json.dumps(json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["text"]))
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("no answer")
PYTHON
  kill $server
  wait $server || status=1
  return $status
}
# In every layout, the answer is that of one rank.
ranks() {
  local layout one found
  one=$(answer | grep '^answer:') || return
  for layout in '-tp 2' '-pp 2' '-tp 2 -pp 2' '-dp 2'; do
    found=$(answer $layout | grep '^answer:') || return
    echo "$layout: $found"
    [ "$found" = "$one" ] || return
  done
}
# Runs all kinds of proposers at the same time, each in a process.
guesses() {
  local status=0 parts=()
  for method in ngram suffix draft_model eagle eagle3 mtp medusa mlp_speculator hybrid; do
    "$bin/draft_tokens_soak" 300 1 cuda $method &
    parts+=($!)
  done
  for part in "${parts[@]}"; do wait "$part" || status=1; done
  return $status
}
# The demo model's answers to random tokens, with and without draft tokens.
drafts() {
  for batch in 1 16; do
    for method in '' '{"method": "ngram", "num_speculative_tokens": 4}' '{"model": "models/demo-draft", "num_speculative_tokens": 4}' \
      '{"method": "eagle3", "model": "models/demo-eagle3", "num_speculative_tokens": 3}'; do
      echo "batch $batch ${method:-none}"
      "$bin/octavo" bench latency models/demo --device cuda --batch-size $batch --input-len 32 --output-len 128 --num-iters-warmup 3 --num-iters 5 \
        ${method:+--speculative-config "$method"}
    done
  done
}
export -f serve answer ranks guesses drafts shards
export bin out

for part in "${parts[@]}"; do
  case $part in
    tests)
      step operators 150 bash -c "shards '$bin/kernels_test' '*/cuda:*Cuda*:-CudaStreams.*'"
      step streams 60 "$bin/kernels_test" --gtest_filter='CudaStreams.*'  # which look at the memory that is free
      step goldens 150 bash -c "shards '$bin/model_test' '*ModelGolden*:*QuantizedGolden.Cuda*'"
      step executor 150 "$bin/engine_test" --gtest_filter='*ExecutorOn*:*DeviceEngine*:Refused*:Speculation.OnADevice*'
      ;;
    sanitizer)
      if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
        cases='Backends/Operators.*/cuda:Backends/SampleEach.*/cuda:Backends/Experts.*/cuda:CudaStreams.*'
        step memcheck 240 "$sanitizer" --target-processes all --error-exitcode 9 "$bin/kernels_test" --gtest_filter="$cases:Backends/AttentionOf.Agrees*/cuda"
        step racecheck 240 "$sanitizer" --target-processes all --tool racecheck --error-exitcode 9 "$bin/kernels_test" --gtest_filter="$cases"
      else
        echo "sanitizer            skipped: no compute-sanitizer on this machine" | tee "$out/sanitizer.status"
      fi
      ;;
    serve)
      step serve 90 bash -c serve
      ;;
    ranks)
      step rank_goldens 150 "$bin/model_test" --gtest_filter='*ShardOnGpus*:StagedGroup.*'
      step ranks 200 bash -c ranks
      ;;
    guesses)
      step guesses 150 bash -c guesses
      step drafts 90 bash -c drafts
      ;;
    ops)
      step ops 240 sh -c "'$bin/octavo' bench ops --device cuda --repeats 5 --filter 'Llama-3-8B' --json >'$out/ops.json'"
      ;;
    decode)
      step decode_short 240 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_short.json" --context 1024
      step decode_long 240 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_long.json" --context 16256 --batches 1 16
      ;;
    engine)
      step engine_1b 240 "$python" bench/gpu/engine.py "$bin/octavo" "$out/engine_1b.json" --shapes llama-3.2-1b
      step engine_8b 240 "$python" bench/gpu/engine.py "$bin/octavo" "$out/engine_8b.json" --shapes llama-3-8b
      ;;
    torch)
      step torch 60 "$python" bench/gpu/torch_ops.py "$out/torch_ops.json"
      ;;
    torch_engine)
      step torch_engine 300 "$python" bench/gpu/torch_decoder.py "$out/torch.json"
      ;;
    *)
      echo "gpu_check: no part is called $part" >&2
      exit 2
      ;;
  esac
done
"$python" bench/gpu/table.py "$out" | tee "$out/table.txt" || failed+=(table)
tar -C build -czf build/gpu_check.tgz gpu_check
echo "written to $out, and in one file to build/gpu_check.tgz"
if [ ${#left[@]} -gt 0 ]; then echo "left for another call: ${left[*]}"; fi
if [ ${#failed[@]} -gt 0 ]; then exit 1; fi
[ ${#left[@]} -eq 0 ] || exit 4
