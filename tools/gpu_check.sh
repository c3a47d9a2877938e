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
#   ranks          ranks that share the GPU, or have a GPU each and NCCL: model goldens, and servers in every layout
#   cards          the card, and whether the program has machine code for it
#   numbers        products with quantised weights and activations, and KV caches in 8 bits: goldens, and their times
#   refused        sleep mode; sounds, prompts for cross attention and adapters; models that this backend refuses, with the
#                  reason
#   host_experts   experts that the CPU computes, and experts that the GPU reads in host memory: products, goldens,
#                  answers and times
#   transfer       KV blocks from ranks to a store and to one rank
#   guesses        draft tokens of every kind change no answer; their gain
#   ops            times of every operator
#   decode         times of a decoding step and its bytes, over batches, contexts and common prefixes, for a Llama-3-8B shape
#   engine         times of whole engines for Llama-3.2-1B and Llama-3-8B shapes, with and without graphs and overlap
#   torch          PyTorch's operators at the same shapes
#   torch_engine   workloads of whole engines in PyTorch, compiled
#   speed          ops, decode, engine, torch and torch_engine
#
#   tools/gpu_check.sh pack
#
# builds, and packs programs, libraries, scripts and test data into build/gpu_check.tar.xz, for a machine
# that cannot build: unpack it anywhere, and run tools/gpu_check.sh there. It needs Python 3; torch and
# torch_engine need PyTorch.
#
#   tools/gpu_check.sh dry [--seconds N] [--again] [PART..]
#
# tests this script without a GPU: runs the parts on the emulated GPU of the preset release, with few tests and
# short texts. ops, decode and engine use the CPU. Results are in build/gpu_check_dry.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu_check
programs=(octavo kernels_test model_test engine_test draft_tokens_soak)
# Amounts of work: one of `share` tests runs, steps take `slower` times as long; arguments of the parts that measure.
# small: flags of engines on the emulated GPU, which is too slow to run the largest steps once at the start.
dry='' slower=1 share=1 small='' tokens=64 prompts=256 input=512 requests=300 batch=16
ops=(--device cuda --filter Llama-3-8B) decode=() engine=()
if [ "${1:-}" = dry ]; then
  shift
  out=build/gpu_check_dry
  small='--max-num-batched-tokens 64 --num-gpu-blocks-override 64 --max-model-len 512'
  dry=1 slower=10 share=40 tokens=4 prompts=4 input=16 requests=2 batch=2
  ops=(--device cpu --filter Llama-3.2-1B rotary)
  decode=(--device cpu --shape llama-100m --batches 1 --context 64 --prefix 64)
  engine=(--device cpu --shapes llama-100m --workloads 'first token')
fi
mkdir -p "$out"

# Gives the programs of the emulated GPU the names of those for CUDA, and NCCL's stand-in the ranks.
build_dry() {
  local program
  cmake --preset release >"$out/configure.log"
  cmake --build --preset release -j "${JOBS:-$(nproc)}" --target octavo_emulated "${programs[@]:1}" nccl_stand_in >"$out/build.log" || { tail -40 "$out/build.log"; exit 1; }
  mkdir -p "$bin"
  for program in "${programs[@]:1}"; do ln -sfn "$PWD/build/release/$program" "$bin/$program"; done
  ln -sfn "$PWD/build/release/octavo_emulated" "$bin/octavo"
  export LD_LIBRARY_PATH=$PWD/build/release/nccl_stand_in${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export GTEST_TOTAL_SHARDS=$share GTEST_SHARD_INDEX=0
}

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
    # shellcheck disable=SC2016 # the script expands them
    printf '#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/%s.bin" "$@"\n' "$program" >"$place/bin/$program"
    chmod +x "$place/bin/$program"
  done
  # Copies all libraries except the C library, which belongs to the machine.
  (cd build/cuda && ldd "${programs[@]}") | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt)\.so' | xargs -I{} cp -L {} "$place/bin/"
  tar -cf - tools/gpu_check.sh bench/gpu bench/peers/models.py models/demo{,-draft,-eagle3} models/demo-moe tests/data/{models,quantized,rounded,drafters,sound,source,adapters} |
    tar -xf - -C "$place"
  # Copies only those of the largest goldens that engine_test reads, so that the archive stays below 64 MB.
  (cd "$place" && du -s tests/data/models/* | awk '$1 > 330 { print $2 }' | grep -vE '/(gemma2|qwen3_next|deepseek_v32|deepseek_v4|qwen3_moe|gpt_oss)$' | xargs rm -r)
  XZ_OPT=-9 tar -cJf build/gpu_check.tar.xz -C build/pack octavo_gpu
  rm -rf build/pack
  ls -l build/gpu_check.tar.xz
  exit
fi

seconds=$((480 * slower)) again=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 && shift 2 ;;
    --again) again=1 && shift ;;
    *) break ;;
  esac
done
parts=("$@")
[ $# -gt 0 ] || parts=(tests cards serve ranks numbers refused host_experts transfer guesses speed sanitizer)

if [ -n "$dry" ]; then
  bin=$out/bin
  build_dry
elif [ -x bin/octavo ]; then
  bin=bin
else
  bin=build/cuda
  build
fi

# The backend itself reports whether there is a device.
if ! "$bin/octavo" generate models/demo --device cuda $small --max-tokens 4 -p "One two three" >"$out/first_light.log" 2>&1; then
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
  local name=$1 limit=$(($2 * slower)) begin=$SECONDS rest=$((seconds - SECONDS)) status=passed
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

# cases PROGRAM FILTER: runs tests. Each pattern of the filter must match one.
cases() {
  local pattern patterns
  IFS=: read -ra patterns <<<"${2%%:-*}"
  for pattern in "${patterns[@]}"; do
    [ -n "$("$1" --gtest_list_tests --gtest_filter="$pattern")" ] || { echo "no test of $1 is called $pattern"; return 1; }
  done
  "$1" --gtest_filter="$2"
}
# shards PROGRAM FILTER: runs a test program in parallel parts, one per processor, because the reference on
# the host takes most of the time.
shards() {
  local count status=0 parts=()
  count=$(nproc)
  for ((i = 0; i < count; ++i)); do
    GTEST_TOTAL_SHARDS=$((count * share)) GTEST_SHARD_INDEX=$i cases "$1" "$2" >"$out/shard_$i.log" 2>&1 &
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
  "$bin/octavo" serve models/demo --device cuda $small --host 127.0.0.1 --port $port --max-num-seqs 64 &
  server=$!
  for _ in $(seq 600); do
    (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 $server || return
    sleep 0.1
  done
  "$bin/octavo" bench serve --base-url "http://127.0.0.1:$port" --num-prompts "$prompts" --max-concurrency 64 \
    --random-input-len 100 --random-output-len "$tokens" --result-dir "$out" --result-filename serve.json --save-result || answered=1
  kill $server
  wait $server
  return $answered
}
# Prints a greedy answer of a server with the given flags. MODEL: the model (models/demo). ASK: a Python program that
# gets the answer with complete() (prints the answer once).
answer() {
  local port=18732 server status=0
  "$bin/octavo" serve "${MODEL:-models/demo}" --device cuda $small --dtype float32 --host 127.0.0.1 --port $port --max-num-seqs 4 "$@" &
  server=$!
  python3 - $port "${ASK:-complete()}" "$tokens" <<'PYTHON' || status=1
import json, os, subprocess, sys, time, urllib.request

base = f"http://127.0.0.1:{sys.argv[1]}"
prompt = "Once upon a time, " + "there was a river and a mountain, and " * 12


def send(path, **fields):
    request = urllib.request.Request(base + path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=60).read()


def metric(name):
    lines = urllib.request.urlopen(base + "/metrics").read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def complete():
    text = json.loads(send("/v1/completions", prompt=prompt, max_tokens=int(sys.argv[3]), temperature=0))["choices"][0]["text"]
    print("answer:", json.dumps(text))


def used_mib():
    if os.environ["dry"]:
        return []
    found = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return list(map(int, found.stdout.split()))


for _ in range(600):
    try:
        urllib.request.urlopen(base + "/health")
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("the server is not ready")
exec(sys.argv[2])
PYTHON
  kill $server
  wait $server || status=1
  return $status
}
# In every layout, the answer is that of one rank.
ranks() {
  local layout one found flags gpus need
  gpus=${dry:+4}
  gpus=${gpus:-$(nvidia-smi -L | wc -l)}
  one=$(answer | grep '^answer:') || return
  for layout in '-tp 2' '-pp 2' '-tp 2 -pp 2' '-dp 2'; do
    read -ra flags <<<"$layout"
    found=$(answer "${flags[@]}" 2>"$out/rank_server.log" | grep '^answer:') || { cat "$out/rank_server.log"; return 1; }
    cat "$out/rank_server.log"
    echo "$layout: $found"
    [ "$found" = "$one" ] || return
    case $layout in '-dp 2') continue ;; '-tp 2 -pp 2') need=4 ;; *) need=2 ;; esac
    [ "$gpus" -lt "$need" ] || grep -q 'exchange values on their GPUs' "$out/rank_server.log" || return
  done
}
# The card; the program runs on it without compiling PTX.
card() {
  nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv
  "$bin/octavo" doctor | grep -E '^(gpu|nccl) '
  CUDA_DISABLE_PTX_JIT=1 "$bin/octavo" generate models/demo --device cuda $small --max-tokens 4 -p "One two three"
}
# The times of products in every format, and of decode steps with KV caches of 8 and 4 bits.
number_times() {
  "$bin/octavo" bench ops $ops --repeats 5 | grep -Ei 'fp8|int8|int4|mxfp4|q[2-8]_|bf16'
  for dtype in auto fp8 int8_per_token_head int4_per_token_head; do
    echo "KV cache: $dtype"
    "$bin/octavo" bench latency models/demo --device cuda $small --kv-cache-dtype $dtype --batch-size "$batch" --input-len "$input" --output-len "$tokens" \
      --num-iters-warmup 2 --num-iters 3
  done
}
# Sleep frees the memory of the KV cache, and the answers stay the same.
sleeps() {
  local one found
  one=$(answer | grep '^answer:') || return
  found=$(ASK='complete(); awake = used_mib(); send("/sleep?level=1"); asleep = used_mib(); print("MiB:", awake, asleep); assert not awake or sum(asleep) < sum(awake); send("/wake_up"); complete()' \
    answer --server-dev-mode --enable-sleep-mode) || return
  echo "$found"
  [ "$(echo "$found" | grep '^answer:')" = "$one"$'\n'"$one" ]
}
# Models that the backend refuses, with the reason. Each must be refused by name, and none may crash.
refusals() {
  local model text folder count=0
  folder=$(mktemp -d)
  for model in tests/data/models/pangu_pro; do
    [ -e "$model/config.json" ] || continue
    cp -rL "$model" "$folder"
    echo '{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}' >"$folder/$(basename "$model")/tokenizer.json"
    text=$("$bin/octavo" generate "$folder/$(basename "$model")" --device cuda --max-tokens 1 -p a 2>&1 | tail -1)
    echo "$(basename "$model"): $text"
    case $text in *"does not support"*|*"not supported"*) ;; *) return 1 ;; esac
    count=$((count + 1))
  done
  rm -rf "$folder"
  [ "$count" -gt 0 ] || { echo "no model to refuse in tests/data/models"; return 1; }
}
# A mixture of experts has the same answer if the GPU reads experts in host memory. If the CPU computes them,
# it has the same answer in f32, and with and without CUDA graphs.
host_experts() {
  local dtype one found
  local ask='prompt *= 3; complete()'  # more than 128 tokens
  for dtype in float32 bfloat16; do
    one=$(ASK=$ask MODEL=models/demo-moe answer --dtype $dtype | grep '^answer:') || return
    found=$(ASK=$ask MODEL=models/demo-moe answer --dtype $dtype --cpu-offload-gb 1 | grep '^answer:') || return
    [ "$found" = "$one" ] || return
    found=$(ASK=$ask MODEL=models/demo-moe answer --dtype $dtype --n-cpu-moe 1000 | grep '^answer:') || return
    [ $dtype = bfloat16 ] || [ "$found" = "$one" ] || return
    one=$found
    found=$(ASK=$ask MODEL=models/demo-moe answer --dtype $dtype --n-cpu-moe 1000 --enforce-eager | grep '^answer:') || return
    [ "$found" = "$one" ] || return
  done
}
# Times of prompts and decoding, with the dimensions of 4 layers of Qwen3-30B-A3B: the GPU has the experts, the
# CPU computes them, or the GPU reads them in host memory. Their 4.5 GiB in bf16 are the only weights there.
host_expert_times() {
  local flags length model=models/demo-moe gb=0.001
  if [ -z "$dry" ]; then
    model=$(mktemp -d) gb=4.5
    python3 -c 'import pathlib, sys; sys.path.insert(0, "bench/peers"); import models; models.describe("qwen3-30b-a3b", pathlib.Path(sys.argv[1]))' "$model" || return
  fi
  for flags in '' '--n-cpu-moe 4' "--cpu-offload-gb $gb"; do
    for length in 1 "$input"; do
      echo "prompt of $length tokens, flags: ${flags:-none}"
      # shellcheck disable=SC2086 # a flag and its value
      "$bin/octavo" bench latency "$model" --load-format dummy --device cuda $small $flags --batch-size 1 --input-len "$length" --output-len "$tokens" \
        --num-iters-warmup 2 --num-iters 3 || return
    done
  done
  [ -n "$dry" ] || rm -r "$model"
}
# Two ranks store the blocks of a prompt, and one rank loads them.
stores() {
  local folder one found
  folder=$(mktemp -d)
  local tier='{"kv_connector": "SharedStorageConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"load_always": true, "shared_storage_path": "'$folder'"}}'
  one=$(answer | grep '^answer:') || return
  ASK=$'complete()\nwhile not metric("vllm:kv_tier_stored_blocks_total"): time.sleep(0.1)' answer -tp 2 --kv-transfer-config "$tier" || return
  found=$(ASK='complete(); print("hits:", metric("vllm:external_prefix_cache_hits_total"))' answer --kv-transfer-config "$tier") || return
  echo "$found"
  rm -rf "$folder"
  [ "$(echo "$found" | grep '^answer:')" = "$one" ] && ! echo "$found" | grep -q 'hits: 0'
}
# Runs all kinds of proposers at the same time, each in a process.
guesses() {
  local status=0 parts=()
  for method in ngram suffix draft_model eagle eagle3 mtp medusa mlp_speculator hybrid; do
    "$bin/draft_tokens_soak" "$requests" 1 cuda $method &
    parts+=($!)
  done
  for part in "${parts[@]}"; do wait "$part" || status=1; done
  return $status
}
# The demo model's answers to random tokens, with and without draft tokens.
drafts() {
  local method flags
  local size
  for size in 1 "$batch"; do
    for method in '' '{"method": "ngram", "num_speculative_tokens": 4}' '{"model": "models/demo-draft", "num_speculative_tokens": 4}' \
      '{"method": "eagle3", "model": "models/demo-eagle3", "num_speculative_tokens": 3}'; do
      echo "batch $size ${method:-none}"
      flags=()
      [ -z "$method" ] || flags=(--speculative-config "$method")
      "$bin/octavo" bench latency models/demo --device cuda $small --batch-size "$size" --input-len 32 --output-len $((2 * tokens)) --num-iters-warmup 3 --num-iters 5 \
        "${flags[@]}"
    done
  done
}
export -f serve answer ranks card number_times sleeps refusals host_experts host_expert_times stores guesses drafts cases shards
export bin out dry share small tokens prompts input requests batch
# The steps that call functions get these arguments as text.
ops=${ops[*]}
export ops

# `speed` runs the parts that only measure.
expanded=()
for part in "${parts[@]}"; do
  if [ "$part" = speed ]; then expanded+=(ops decode engine torch torch_engine); else expanded+=("$part"); fi
done
for part in "${expanded[@]}"; do
  case $part in
    tests)
      step operators 150 bash -c "shards '$bin/kernels_test' '*/cuda:*Cuda*:-CudaStreams.*'"
      step streams 60 bash -c "cases '$bin/kernels_test' 'CudaStreams.*'"  # which look at the memory that is free
      step goldens 150 bash -c "shards '$bin/model_test' '*ModelGolden*:*QuantizedGolden.Cuda*'"
      step executor 150 bash -c "cases '$bin/engine_test' '*ExecutorOn*:*DeviceEngine*:Refused*:Speculation.OnADevice*'"
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
      step rank_goldens 150 bash -c "cases '$bin/model_test' '*ShardOnGpus*:StagedGroup.*'"
      step ranks 200 bash -c ranks
      ;;
    cards)
      step card 30 bash -c card
      ;;
    numbers)
      step number_goldens 90 bash -c "cases '$bin/model_test' '*QuantizedGolden.Cuda*:*RoundedGolden.Cuda*:*GgufGolden*'"
      step fp8_products 60 bash -c "cases '$bin/kernels_test' '*Fp8Products.*/cuda:CudaInstructions.Fp8*'"
      step number_times 120 bash -c number_times
      ;;
    refused)
      step sleeps 60 bash -c sleeps
      step sounds 90 bash -c "cases '$bin/engine_test' '*OnCuda*:*PromptSound.*Transformers*:AdapterEngine.Recorded*'"
      step refusals 60 bash -c refusals
      ;;
    host_experts)
      step host_products 30 bash -c "cases '$bin/kernels_test' 'CudaHostProducts.*'"
      step host_expert_goldens 60 bash -c "cases '$bin/model_test' '*HostExpertsInCodes*:*HostExpertsInNumbers*/qwen3_moe'"
      step host_expert_engine 90 bash -c "cases '$bin/engine_test' '*HostExpertsEngine*'"
      step host_experts 90 bash -c host_experts
      step host_expert_times 240 bash -c host_expert_times
      ;;
    transfer)
      step stores 120 bash -c stores
      ;;
    guesses)
      step guesses 150 bash -c guesses
      step drafts 90 bash -c drafts
      ;;
    ops)
      step ops 240 sh -c "'$bin/octavo' bench ops $ops --repeats 5 --json >'$out/ops.json'"
      ;;
    decode)
      step decode_short 240 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_short.json" --context 1024 "${decode[@]}"
      step decode_long 240 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_long.json" --context 16256 --batches 1 16 "${decode[@]}"
      # The same lengths, first with separate blocks, then with common ones, which attention reads once per tile.
      step decode_separate 150 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_separate.json" --context 8192 --batches 32 "${decode[@]}"
      step decode_prefix 150 "$python" bench/gpu/decode.py "$bin/octavo" "$out/decode_prefix.json" --prefix 8064 --context 128 --batches 32 64 "${decode[@]}"
      ;;
    engine)
      step engine_1b 240 "$python" bench/gpu/engine.py "$bin/octavo" "$out/engine_1b.json" --shapes llama-3.2-1b "${engine[@]}"
      step engine_8b 240 "$python" bench/gpu/engine.py "$bin/octavo" "$out/engine_8b.json" --shapes llama-3-8b "${engine[@]}"
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
tar -C build -czf "$out.tgz" --exclude=bin "${out#build/}"
echo "written to $out, and in one file to $out.tgz"
if [ ${#left[@]} -gt 0 ]; then echo "left for another call: ${left[*]}"; fi
if [ ${#failed[@]} -gt 0 ]; then exit 1; fi
[ ${#left[@]} -eq 0 ] || exit 4
