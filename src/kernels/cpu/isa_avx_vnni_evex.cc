// The AVX-VNNI functions in AVX-512 (EVEX) encoding, so that tests of this level run on processors that
// have only this encoding.
#include "kernels/cpu/isa_body.h"
#include "kernels/cpu/simd_avx_vnni.h"

namespace octavo::cpu {

constinit const IsaKernels kAvxVnniEvexKernels = kernels_of<AvxVnni>("avx_vnni");

}  // namespace octavo::cpu
