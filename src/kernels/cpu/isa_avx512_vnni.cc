#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx512_vnni.h"

namespace octavo::cpu {

constinit const IsaKernels kAvx512VnniKernels = kernels_of<Avx512Vnni>("avx512_vnni");

}  // namespace octavo::cpu
