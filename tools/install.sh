#!/usr/bin/env bash
# Installs what building and testing Octavo needs: compilers, libraries (tools/packages.sh) and, for the
# tests, a Python environment in .venv. Does nothing if everything is installed. Needs root or sudo only to
# add packages.
#
#   tools/install.sh [build|test|package|aarch64|cuda]
#
# build: to compile and run. test: also the end-to-end tests (default). package: to make packages. aarch64:
# to cross-compile for 64-bit ARM and run the result with qemu. cuda: to compile the CUDA backend, in .cuda
# if no toolkit is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:-test}

. tools/packages.sh
system_packages "$goal"
missing=()
for package in "${packages[@]}"; do $installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  $add "${missing[@]}"
fi

if [ "$goal" = test ] && ! cmp -s tests/requirements.txt .venv/requirements.txt; then
  python3 -m venv .venv
  .venv/bin/pip install -q -r tests/requirements.txt
  cp tests/requirements.txt .venv/requirements.txt
fi

# Installs CUDA's compiler and headers from their Python packages, which contain the same files as the
# toolkit.
toolkit_is_there() {
  local nvcc
  for nvcc in "$(command -v nvcc)" /usr/local/cuda/bin/nvcc .cuda/bin/nvcc; do
    if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13'; then return 0; fi
  done
  return 1
}
if [ "$goal" = cuda ] && ! toolkit_is_there; then
  packages=(nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt nvidia-nvvm)
  echo "installing CUDA 13 into .cuda: ${packages[*]}"
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  python3 -m venv "$wheels/venv"
  "$wheels/venv/bin/pip" download -q --no-deps -d "$wheels" "${packages[@]/%/==13.*}"
  for wheel in "$wheels"/*.whl; do unzip -qo "$wheel" 'nvidia/cu13/*' -d "$wheels/files"; done
  rm -rf .cuda
  mv "$wheels/files/nvidia/cu13" .cuda
  # Wheels contain no permissions. CMake searches for libraries in the toolkit's folders.
  chmod -R u+x .cuda/bin .cuda/nvvm/bin
  ln -s lib .cuda/lib64
fi
