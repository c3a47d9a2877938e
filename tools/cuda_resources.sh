#!/usr/bin/env bash
# Prints a table of registers, stack and spills of every kernel, as nvcc's assembler reports them. Fails if
# an attention or sampling kernel spills. Needs nvcc (tools/install.sh cuda), but no GPU.
#   tools/cuda_resources.sh [ARCHITECTURE..]   default: sm_80 sm_89 sm_90a
set -euo pipefail
cd "$(dirname "$0")/.."
architectures=("${@:-sm_80}")
[ $# -eq 0 ] && architectures=(sm_80 sm_89 sm_90a)
nvcc=.cuda/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$PWD/src/kernels" "$work/kernels"

for source in attention attention_latent attention_plain attention_wgmma choose_tokens fp8_matmul matmul qkv_store rows sample wgmma_codes wgmma_fp8 wgmma_matmul; do
  for architecture in "${architectures[@]}"; do
    "$nvcc" -std=c++20 --expt-relaxed-constexpr -fmad=false -O3 -arch="$architecture" -Xptxas -v -I "$work" \
      -cubin -o "$work/out.cubin" "src/kernels/cuda/$source.cu" 2>&1 | c++filt |
      awk -v file="$source" '
        /Compiling entry function/ { match($0, /[a-z0-9_]+_kernel(<[^>]*>)?/); name = substr($0, RSTART, RLENGTH)
                                     gsub(/octavo::cuda::|\(int\)/, "", name) }
        /spill stores/ { for (i = 1; i <= NF; ++i) if ($(i + 2) == "spill" && $(i + 3) ~ /^stores/) spills = $i }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
                                  print file ".cu\t" name "\t" registers "\t" spills }'
  done
done >"$work/report"

# Kernels with one name in one file that differ only in number formats are one row, with the largest of
# their numbers.
printf '| kernel | registers on %s | spilled bytes |\n|---|---|---|\n' "$(IFS=,; echo "${architectures[*]}")"
awk -F '\t' '
  { gsub(/<(Bf16|F16|float)(, (Bf16|F16|float))?>/, "", $2); gsub(/<(Bf16|F16), /, "<", $2)
    name = $1 ", `" $2 "`"; seen[name]++
    if ($3 > registers[name]) registers[name] = $3; if (!(name in least) || $3 < least[name]) least[name] = $3
    if ($4 > spills[name]) spills[name] = $4 }
  END { for (name in seen)
          print "| " name " | " (least[name] == registers[name] ? registers[name] : least[name] " to " registers[name]) \
                " | " spills[name] + 0 " |" }' "$work/report" | sort
if awk -F '\t' '$1 ~ /attention|sample/ && $4 > 0 { found = 1 } END { exit !found }' "$work/report"; then
  echo "a kernel of attention or sampling spills" >&2
  exit 1
fi
