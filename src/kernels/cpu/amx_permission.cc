#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/matrix_tiles.h"

namespace octavo::cpu {
namespace {

// Bits of EDX in CPUID leaf 7. They are defined here, because gcc and clang name them differently.
constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24, kAmxInt8 = 1U << 25;

std::string_view request() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxTile) == 0) return "AMX-TILE";
  if ((d & kAmxBf16) == 0) return "AMX-BF16";
  if ((d & kAmxInt8) == 0) return "AMX-INT8";
  // Since Linux 5.16, a process must request permission before it uses tiles.
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) return "the kernel's permission for AMX";
  return "";
}

}  // namespace

std::string_view missing_for_amx() {
  static const std::string_view missing = request();
  return missing;
}

}  // namespace octavo::cpu
