// The same level in the encoding of AVX-512: so that it runs in every test on processors that know only that one.
#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx_vnni.h"

namespace octavo::cpu {

constinit const IsaKernels kAvxVnniEvexKernels = kernels_of<AvxVnni>("avx_vnni");

}  // namespace octavo::cpu
