#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_neon.h"

namespace octavo::cpu {

constinit const IsaKernels kNeonKernels = kernels_of<Neon>("neon");

}  // namespace octavo::cpu
