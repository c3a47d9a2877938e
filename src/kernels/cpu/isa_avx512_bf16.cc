#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx512_bf16.h"

namespace octavo::cpu {

constinit const IsaKernels kAvx512Bf16Kernels = kernels_of<Avx512Bf16>("avx512_bf16");

}  // namespace octavo::cpu
