// The same level in AVX-512 encoding, so that tests cover it on processors with only that encoding.
#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx_vnni.h"

namespace octavo::cpu {

constinit const IsaKernels kAvxVnniEvexKernels = kernels_of<AvxVnni>("avx_vnni");

}  // namespace octavo::cpu
