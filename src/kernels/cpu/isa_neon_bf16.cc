#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_neon_bf16.h"

namespace octavo::cpu {

constinit const IsaKernels kNeonBf16Kernels = kernels_of<NeonBf16>("neon_bf16");

}  // namespace octavo::cpu
