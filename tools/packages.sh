# Names of the system packages that build and test Octavo. tools/install.sh sources this file.
#
#   system_packages GOAL   sets `packages` (names), `installed` (a command that tests one) and `add` (a function that adds some)
#
# On an unknown system, or one whose libraries are too old, the script ends with a message that says what to
# do instead.

fail() {
  echo "tools/install.sh: $*" >&2
  exit 1
}

# Returns whether Rust 1.85 or later is installed, from the system or from rustup.
has_rust() {
  local name version
  for name in cargo $(compgen -c cargo-1. | sort -u); do
    version=$("$name" --version 2>/dev/null | sed -n 's/^cargo 1[.]\([0-9]*\).*/\1/p')
    if [ "${version:-0}" -ge 85 ]; then return 0; fi
  done
  return 1
}

# Prints the version of Boost with Boost.JSON (1.81 or later), such as 1.83: the installed one, otherwise
# the newest of apt's lists.
apt_boost() {
  local names
  names=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 'libboost-json*-dev' 2>/dev/null | sed -n 's/^ii *//p')
  [ -n "$names" ] || names=$(apt-cache pkgnames libboost-json)
  [ -n "$names" ] || names=$($sudo apt-get update -qq && apt-cache pkgnames libboost-json)
  sed -n 's/^libboost-json\([0-9.]*\)-dev$/\1/p' <<<"$names" | sort -V | awk -F. '$1 > 1 || $2 >= 81' | tail -n 1
}

# Prints the oldest g++ of apt's lists with C++23's std::expected (12 and later), or nothing if the default
# has it.
apt_compiler() {
  local version
  version=$(apt-cache depends g++ 2>/dev/null | sed -n 's/.*Depends: g++-\([0-9]*\)$/\1/p' | tail -n 1)
  [ "${version:-12}" -ge 12 ] || echo g++-12
}

# Prints the package of Rust 1.85 or later: cargo-web on Debian 12, cargo-1.85 on Ubuntu, cargo on others.
apt_cargo() {
  local name version
  for name in cargo cargo-web $(apt-cache pkgnames cargo-1. | grep -v -e -doc | sort -V); do
    version=$(apt-cache policy "$name" 2>/dev/null | sed -n 's/ *Candidate: \([0-9]*\)[.]\([0-9]*\).*/\1 \2/p')
    case $name in cargo-1.*) version="1 ${name#cargo-1.}" ;; esac
    set -- $version
    if [ "${1:-0}" -ge 1 ] && [ "${2:-0}" -ge 85 ]; then echo "$name ${name/cargo/rustc}"; return; fi
  done
}

apt_add() {
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq
  $sudo apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

apt_packages() {
  local goal=$1 jpeg=libjpeg62-turbo-dev boost compiler cargo
  boost=$(apt_boost)
  [ -n "$boost" ] || fail "Boost.JSON 1.81 or later is needed, and $PRETTY_NAME has $(apt-cache policy libboost-dev |
    sed -n 's/ *Candidate: //p'). Install the tarball or the wheel (docs/start/install.md), or build on Debian 12 or Ubuntu 24.04."
  apt-cache show libjpeg62-turbo-dev >/dev/null 2>&1 || jpeg=libjpeg-turbo8-dev
  compiler=$(apt_compiler)
  packages=(
    g++ $compiler make cmake ninja-build ccache pkg-config git ca-certificates python3 python3-venv
    libboost"$boost"-dev libboost-json"$boost"-dev libcli11-dev libfmt-dev libspdlog-dev libxxhash-dev libssl-dev libedit-dev
    libmsgpuck-dev libyaml-cpp-dev libzmq3-dev cppzmq-dev "$jpeg" libpng-dev libgif-dev libwebp-dev zlib1g-dev
    libsndfile1-dev libsoxr-dev
    libc-ares-dev libgrpc++-dev libprotobuf-dev protobuf-compiler libnghttp2-dev libsqlite3-dev
    libgtest-dev libgmock-dev libbenchmark-dev
  )
  case $goal in
    test) packages+=(curl valgrind libopenmpi-dev openmpi-bin libucx-dev libavformat-dev libswscale-dev iproute2 help2man etcd-server) ;;
    package) packages+=(help2man dpkg-dev file) ;;
    cuda) packages+=(unzip) ;;
    aarch64)
      dpkg --print-foreign-architectures | grep -qx arm64 || { $sudo dpkg --add-architecture arm64 && $sudo apt-get update -qq; }
      packages+=(g++-aarch64-linux-gnu qemu-user cargo-web rustc-web libstd-rust-web-dev:arm64)
      packages+=(lib{boost"$boost",boost-json"$boost",fmt,spdlog,xxhash,ssl,edit,msgpuck,yaml-cpp,zmq3,png,gif,webp,sndfile1,soxr,c-ares,grpc++,protobuf,nghttp2,sqlite3,gtest,gmock,benchmark}-dev:arm64 "$jpeg":arm64 zlib1g-dev:arm64)
      ;;
  esac
  if ! has_rust; then
    cargo=$(apt_cargo)
    [ -n "$cargo" ] || fail "Rust 1.85 or later is needed, and $PRETTY_NAME has none: install it by rustup (https://rustup.rs)."
    packages+=($cargo)
  fi
  installed=apt_installed
  add=apt_add
}

apt_installed() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -qx 'install ok installed'; }

dnf_packages() {
  packages=(
    gcc-c++ make cmake ninja-build ccache pkgconf-pkg-config git ca-certificates python3
    boost-devel cli11-devel fmt-devel spdlog-devel xxhash-devel openssl-devel libedit-devel
    msgpuck-devel yaml-cpp-devel zeromq-devel cppzmq-devel libjpeg-turbo-devel libpng-devel giflib-devel libwebp-devel zlib-devel
    libsndfile-devel soxr-devel
    c-ares-devel grpc-devel protobuf-devel protobuf-compiler libnghttp2-devel sqlite-devel
    gtest-devel gmock-devel google-benchmark-devel
  )
  case $1 in
    test) packages+=(curl valgrind openmpi-devel ucx-devel libavformat-free-devel libswscale-free-devel iproute help2man etcd) ;;
    package) packages+=(help2man dpkg-dev file) ;;
    cuda) packages+=(unzip) ;;
    aarch64) fail "cross-compiling for 64-bit ARM is set up for Debian 12 only" ;;
  esac
  has_rust || packages+=(cargo rust)
  installed=dnf_installed
  add=dnf_add
}

dnf_installed() { rpm -q --quiet --whatprovides "$1"; }
dnf_add() { $sudo dnf install -y -q "$@"; }

system_packages() {
  [ "$(uname -s)" = Linux ] || fail "Octavo builds and runs on Linux. On $(uname -s), use a container: docker build -f deploy/Dockerfile -t octavo ."
  PRETTY_NAME="this system"
  if [ -r /etc/os-release ]; then . /etc/os-release; fi
  sudo=
  if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then sudo=sudo; fi
  if command -v apt-get >/dev/null; then
    apt_packages "$1"
  elif command -v dnf >/dev/null; then
    dnf_packages "$1"
  else
    fail "$PRETTY_NAME has neither apt-get nor dnf. Install the libraries of tools/packages.sh by hand, then: cmake --preset release &&" \
      "cmake --build --preset release --target octavo. Or use a container: docker build -f deploy/Dockerfile -t octavo ."
  fi
}
