#!/usr/bin/env bash
# Installs what building and testing Octavo needs on Debian 12: compilers, libraries and, for the tests, a Python
# environment in .venv. Does nothing when all is there; needs root only to add packages.
#   tools/install.sh [build|test|aarch64]   build: to compile and run; test: also the end-to-end tests (default);
#                                           aarch64: to cross-compile for 64-bit ARM and run the result under qemu
set -euo pipefail
cd "$(dirname "$0")/.."
goal=${1:-test}

packages=(
  g++ make cmake ninja-build ccache pkg-config git ca-certificates
  libboost1.81-dev libboost-json1.81-dev libcli11-dev libfmt-dev libspdlog-dev libxxhash-dev libssl-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
[ "$goal" = test ] && packages+=(python3 python3-venv)
if [ "$goal" = aarch64 ]; then
  dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64 && apt-get update -qq; }
  packages+=(g++-aarch64-linux-gnu qemu-user cargo-web rustc-web libstd-rust-web-dev:arm64)
  packages+=(lib{boost1.81,boost-json1.81,fmt,spdlog,xxhash,ssl,gtest,gmock,benchmark}-dev:arm64)
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
