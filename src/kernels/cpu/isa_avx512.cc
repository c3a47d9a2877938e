#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx512.h"

namespace octavo::cpu {

constinit const IsaKernels kAvx512Kernels = kernels_of<Avx512>("avx512");

}  // namespace octavo::cpu
