#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_neon_dot.h"

namespace octavo::cpu {

constinit const IsaKernels kNeonDotKernels = kernels_of<NeonDot>("neon_dot");

}  // namespace octavo::cpu
