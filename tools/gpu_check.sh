#!/usr/bin/env bash
# What can only be checked on an NVIDIA GPU, in one call: builds with the CUDA backend, then operators against the reference,
# model goldens, the executor beside the CPU's, compute-sanitizer over the operators, and the engine's times on the shipped model. Without a GPU it stops where one
# is needed, with exit code 3. Writes everything to build/gpu_check.
#   tools/gpu_check.sh [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
out=build/gpu_check
mkdir -p "$out"

tools/install.sh cuda
cmake --preset cuda >"$out/configure.log"
cmake --build --preset cuda -j "$jobs" --target octavo kernels_test model_test engine_test >"$out/build.log" ||
  { tail -40 "$out/build.log"; exit 1; }

# The backend itself says whether there is a device.
if ! build/cuda/octavo generate --device cuda --max-tokens 4 -p "One two three" >"$out/first_light.log" 2>&1; then
  cat "$out/first_light.log"
  echo "gpu_check: built for CUDA, but the backend could not start here; nothing ran on a GPU"
  exit 3
fi

failed=()
step() {  # step NAME COMMAND..: its output goes to NAME.log, and to the JSON whether it passed
  local name=$1 begin=$SECONDS status=passed
  shift
  "$@" >"$out/$name.log" 2>&1 || { status=failed; failed+=("$name"); tail -20 "$out/$name.log"; }
  printf '%-14s %-7s %4d s\n' "$name" "$status" $((SECONDS - begin))
  results+=("\"$name\": {\"status\": \"$status\", \"seconds\": $((SECONDS - begin))}")
}
results=()
cuda_tests='*/cuda:*Cuda*'
step operators timeout 150 build/cuda/kernels_test --gtest_filter="$cuda_tests"
step goldens timeout 120 build/cuda/model_test --gtest_filter='*ModelGolden*'
step executor timeout 60 build/cuda/engine_test --gtest_filter='*ExecutorOn*'
if sanitizer=$(command -v compute-sanitizer); then
  step sanitizer timeout 150 "$sanitizer" --error-exitcode 9 build/cuda/kernels_test \
    --gtest_filter='Backends/Operators.*/cuda:Backends/SampleEach.*/cuda'
else
  echo "sanitizer      skipped: no compute-sanitizer on this machine"
  results+=('"sanitizer": {"status": "skipped", "seconds": 0}')
fi
step latency timeout 60 build/cuda/octavo bench latency --device cuda --output-json "$out/latency.json"
step throughput timeout 60 build/cuda/octavo bench throughput --device cuda --output-json "$out/throughput.json"
tail -n 2 "$out/latency.log" "$out/throughput.log"
(IFS=,; echo "{${results[*]}}") >"$out/result.json"
echo "written to $out"
[ ${#failed[@]} -eq 0 ]
