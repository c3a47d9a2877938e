#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx2.h"

namespace octavo::cpu {

constinit const IsaKernels kAvx2Kernels = kernels_of<Avx2>("avx2");

}  // namespace octavo::cpu
