#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_neon_bf16.h"

namespace octavo::cpu {
namespace {

constexpr auto kDotTiles = dot_tiles<NeonBf16>(std::make_index_sequence<NeonBf16::kTileRows>{});

}  // namespace

constinit const IsaKernels kNeonBf16Kernels = kernels_of<NeonBf16>("neon_bf16", kDotTiles.functions);

}  // namespace octavo::cpu
