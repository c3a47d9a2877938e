#!/usr/bin/env bash
# Installs what building and testing Octavo needs on Debian 12: compilers, libraries and, for the tests, a Python
# environment in .venv. Does nothing when all is there; needs root only to add packages.
#   tools/install.sh [build|test|package|aarch64|cuda]
#     build: to compile and run; test: also the end-to-end tests (default); package: to make packages;
#     aarch64: to cross-compile for 64-bit ARM and run the result under qemu;
#     cuda: to compile the CUDA backend, in .cuda where no toolkit is installed
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:-test}

packages=(
  g++ make cmake ninja-build ccache pkg-config git ca-certificates python3 python3-venv
  libboost1.81-dev libboost-json1.81-dev libcli11-dev libfmt-dev libspdlog-dev libxxhash-dev libssl-dev libedit-dev
  libmsgpuck-dev libyaml-cpp-dev libzmq3-dev cppzmq-dev libjpeg62-turbo-dev libpng-dev libwebp-dev zlib1g-dev
  libsndfile1-dev libsoxr-dev
  libc-ares-dev libgrpc++-dev libprotobuf-dev protobuf-compiler libnghttp2-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
[ "$goal" = test ] && packages+=(valgrind libopenmpi-dev openmpi-bin libucx-dev libavformat-dev libswscale-dev iproute2 help2man etcd-server)
[ "$goal" = package ] && packages+=(help2man)
[ "$goal" = cuda ] && packages+=(unzip)
if [ "$goal" = aarch64 ]; then
  dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64 && apt-get update -qq; }
  packages+=(g++-aarch64-linux-gnu qemu-user cargo-web rustc-web libstd-rust-web-dev:arm64)
  packages+=(lib{boost1.81,boost-json1.81,fmt,spdlog,xxhash,ssl,edit,msgpuck,yaml-cpp,zmq3,jpeg62-turbo,png,webp,sndfile1,soxr,c-ares,grpc++,protobuf,nghttp2,gtest,gmock,benchmark}-dev:arm64 zlib1g-dev:arm64)
fi
# A Rust tool chain that is there already, Debian's or rustup's, is used as it is.
if ! command -v cargo >/dev/null; then packages+=(cargo-web rustc-web); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -qx 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ "$goal" = test ] && ! cmp -s tests/requirements.txt .venv/requirements.txt; then
  python3 -m venv .venv
  .venv/bin/pip install -q -r tests/requirements.txt
  cp tests/requirements.txt .venv/requirements.txt
fi

# CUDA's compiler and headers from their Python packages, which hold the same files as the toolkit.
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
  # Wheels carry no permissions. CMake looks for libraries where a toolkit has them.
  chmod -R u+x .cuda/bin .cuda/nvvm/bin
  ln -s lib .cuda/lib64
fi
