#!/bin/sh
# Builds XGrammar and llguidance from the sources of their packages, each with a small program, for
# bench_engines.py.
#
#   build_neighbours.sh FOLDER     writes FOLDER/xgrammar_walks and FOLDER/llguidance_walks; needs Python, CMake, cargo
set -e
here=$(cd "$(dirname "$0")/neighbours" && pwd)
mkdir -p "$1" && cd "$1"
version=0.2.8

if [ ! -d "xgrammar-$version" ]; then
  python3 -m venv venv
  # Requirements of the package's build, which pip needs to read its name and version.
  venv/bin/pip install -q scikit-build-core setuptools_scm nanobind apache-tvm-ffi
  venv/bin/pip download -q --no-deps --no-binary :all: --no-build-isolation "xgrammar==$version"
  tar xzf "xgrammar-$version.tar.gz"
fi
mkdir -p xgrammar_build
echo 'set(XGRAMMAR_BUILD_PYTHON_BINDINGS OFF)' > xgrammar_build/config.cmake
cmake -S "xgrammar-$version" -B xgrammar_build -DCMAKE_BUILD_TYPE=Release
cmake --build xgrammar_build --parallel 3
c++ -std=c++17 -O3 -DNDEBUG -flto=auto -I"xgrammar-$version/include" -I"xgrammar-$version/3rdparty/dlpack/include" \
  -I"xgrammar-$version/3rdparty/picojson" "$here/xgrammar.cc" xgrammar_build/libxgrammar.a -lpthread -o xgrammar_walks

cp -r "$here/llguidance" .
CARGO_TARGET_DIR=llguidance_build cargo build --release --jobs 3 --manifest-path llguidance/Cargo.toml
cp llguidance_build/release/llguidance_walks .
