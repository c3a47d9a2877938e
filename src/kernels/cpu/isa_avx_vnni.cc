#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx_vnni.h"

namespace octavo::cpu {

constinit const IsaKernels kAvxVnniKernels = kernels_of<AvxVnni>("avx_vnni");

}  // namespace octavo::cpu
