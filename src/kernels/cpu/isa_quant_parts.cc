#include "kernels/cpu/quant_parts_body.h"
#include "kernels/cpu/simd_avx512_bf16.h"

namespace octavo::cpu {

using S = Avx512Bf16;
constinit const QuantParts kQuantParts[kQuantKinds] = {
    quant_parts<S, 0>(),  quant_parts<S, 1>(),  quant_parts<S, 2>(),  quant_parts<S, 3>(),
    quant_parts<S, 4>(),  quant_parts<S, 5>(),  quant_parts<S, 6>(),  quant_parts<S, 7>(),
    quant_parts<S, 8>(),  quant_parts<S, 9>(),  quant_parts<S, 10>(), quant_parts<S, 11>(),
    quant_parts<S, 12>(), quant_parts<S, 13>(), quant_parts<S, 14>(), quant_parts<S, 15>(),
    quant_parts<S, 16>(), quant_parts<S, 17>(), quant_parts<S, 18>(), quant_parts<S, 19>(),
    quant_parts<S, 20>(), quant_parts<S, 21>()};

}  // namespace octavo::cpu
