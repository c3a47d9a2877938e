#!/usr/bin/env bash
# What can only be checked on an NVIDIA GPU, in one call of some minutes. Without a GPU it stops where one is needed, with exit
# code 3. Everything is written to build/gpu_check, the whole table to build/gpu_check/table.txt and result.json.
#   tools/gpu_check.sh [PART..]   tests: operators against the reference, model goldens, engines with and without graphs;
#                                 sanitizer: compute-sanitizer over the operators; ops: times of every operator;
#                                 engine: times of whole engines on generated Llama-3.2-1B and Llama-3-8B shapes, with graphs
#                                 and without, overlapping and not; torch: the same in PyTorch. All of them when left out.
#   tools/gpu_check.sh pack       builds and puts the programs with their libraries into build/gpu_programs.tar.xz, for a machine
#                                 that has a GPU but cannot build; where that file lies, it is used instead of building
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu_check
pack=build/gpu_programs.tar.xz
programs=(octavo kernels_test model_test engine_test)
mkdir -p "$out"

build() {
  tools/install.sh cuda
  cmake --preset cuda >"$out/configure.log"
  cmake --build --preset cuda -j "${JOBS:-$(nproc)}" --target "${programs[@]}" >"$out/build.log" || { tail -40 "$out/build.log"; exit 1; }
}

if [ "${1:-}" = pack ]; then
  build
  rm -rf build/gpu_programs
  mkdir -p build/gpu_programs
  # Each is started by a script that shows it, and nobody else, the libraries beside it.
  for program in "${programs[@]}"; do
    strip -o "build/gpu_programs/$program.bin" "build/cuda/$program"
    printf '#!/bin/sh\nhere=$(dirname "$0")\nLD_LIBRARY_PATH=$here exec "$here/%s.bin" "$@"\n' "$program" >"build/gpu_programs/$program"
    chmod +x "build/gpu_programs/$program"
  done
  # All libraries but the C library, which belongs to the machine.
  ldd build/cuda/octavo build/cuda/kernels_test | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt)\.so' | xargs -I{} cp -L {} build/gpu_programs/
  tar -cJf "$pack" -C build gpu_programs
  ls -l "$pack"
  exit
fi

bin=build/cuda
if [ -f "$pack" ]; then
  echo "using the programs of $pack, made $(date -r "$pack" '+%F %T'), not building"
  tar -xJf "$pack" -C build
  bin=build/gpu_programs
else
  build
fi

# The backend itself says whether there is a device.
if ! "$bin/octavo" generate --device cuda --max-tokens 4 -p "One two three" >"$out/first_light.log" 2>&1; then
  cat "$out/first_light.log"
  echo "gpu_check: built for CUDA, but the backend could not start here; nothing ran on a GPU"
  exit 3
fi

parts=("$@")
[ $# -gt 0 ] || parts=(tests sanitizer ops engine torch)
failed=()
step() {  # step NAME SECONDS COMMAND..: its output goes to NAME.log, whether it passed to NAME.status
  local name=$1 limit=$2 begin=$SECONDS status=passed
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1 || { status=failed; failed+=("$name"); tail -20 "$out/$name.log"; }
  printf '%-14s %-7s %4d s\n' "$name" "$status" $((SECONDS - begin)) | tee "$out/$name.status"
}
python=python3
[ -x .venv/bin/python ] && .venv/bin/python -c 'import torch' 2>/dev/null && python=.venv/bin/python
for part in "${parts[@]}"; do
  case $part in
    tests)
      step operators 150 "$bin/kernels_test" --gtest_filter='*/cuda:*Cuda*'
      step goldens 120 "$bin/model_test" --gtest_filter='*ModelGolden*'
      step executor 120 "$bin/engine_test" --gtest_filter='*ExecutorOn*:*DeviceEngine*:Refused*'
      ;;
    sanitizer)
      if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
        step sanitizer 150 "$sanitizer" --target-processes all --error-exitcode 9 "$bin/kernels_test" \
          --gtest_filter='Backends/Operators.*/cuda:Backends/SampleEach.*/cuda:CudaStreams.*'
      else
        echo "sanitizer      skipped: no compute-sanitizer on this machine" | tee "$out/sanitizer.status"
      fi
      ;;
    ops)
      step ops 120 sh -c "'$bin/octavo' bench ops --device cuda --repeats 5 --json >'$out/ops.json'"
      ;;
    engine)
      step engine 300 "$python" bench/gpu/engine.py "$bin/octavo" "$out/engine.json"
      ;;
    torch)
      step torch 240 "$python" bench/gpu/torch_decoder.py "$out/torch.json"
      ;;
    *)
      echo "gpu_check: no part is called $part" >&2
      exit 2
      ;;
  esac
done
"$python" bench/gpu/table.py "$out" | tee "$out/table.txt"
echo "written to $out"
[ ${#failed[@]} -eq 0 ]
