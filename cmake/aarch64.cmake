# Cross compilation for 64-bit ARM on Debian (tools/install.sh aarch64); what is built runs under qemu's user emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# Debian's Rust, whose standard library for ARM is a package.
set(CARGO /usr/bin/cargo)
set(OCTAVO_CARGO_ENVIRONMENT RUSTC=/usr/bin/rustc)
set(OCTAVO_RUST_TARGET aarch64-unknown-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
