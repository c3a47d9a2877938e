#include "kernels/cpu/amx_body.h"

namespace octavo::cpu {
namespace {

// The instructions are inline assembly, because intrinsics do not accept template arguments as tile
// numbers, and because the intrinsics of g++ 12 do not declare that they access memory.
struct Amx {
  static void configure(const TileConfiguration& tiles) { asm volatile("ldtilecfg %0" : : "m"(tiles)); }
  static void release() { asm volatile("tilerelease"); }
  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(tile), "r"(from), "r"(stride) : "memory");
  }
  // Like load(), but the lines do not displace others in L1.
  template <int tile>
  static void load_passing(const void* from, std::int64_t stride) {
    asm volatile("tileloaddt1 (%1,%2,1), %%tmm%c0" : : "i"(tile), "r"(from), "r"(stride) : "memory");
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(tile), "r"(to), "r"(stride) : "memory");
  }
  template <int c, int a, int b>
  static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
  // Multiplies signed bytes of a by bytes of b.
  template <int c, int a, int b, bool kSigned>
  static void dot_codes() {
    if constexpr (kSigned) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    } else {
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    }
  }
};

}  // namespace

constinit const MatrixTiles kAmxTiles = matrix_tiles<Amx>();

}  // namespace octavo::cpu
