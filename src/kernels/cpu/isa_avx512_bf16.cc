#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx512_bf16.h"

namespace octavo::cpu {
namespace {

constexpr auto kDotTiles = dot_tiles<Avx512Bf16>(std::make_index_sequence<Avx512Bf16::kTileRows>{});

}  // namespace

constinit const IsaKernels kAvx512Bf16Kernels = kernels_of<Avx512Bf16>("avx512_bf16", kDotTiles.functions);

}  // namespace octavo::cpu
