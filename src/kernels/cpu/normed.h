// Reads one row and normalises it.
#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/ops.h"

namespace octavo::cpu {

// Writes the normalised row x [dim] to `out` in f32. If norm.kind is none, it only converts x.
inline void read_normed(const IsaKernels& kernels, const void* x, Format format, std::int64_t dim,
                        const Norm& norm, float* out) {
  if (norm.kind == NormKind::none) return kernels.widen(x, format, out, dim);
  kernels.head(
      {.x = x,
       .format = format,
       .dim = dim,
       .norm = {norm.kind, norm.eps, norm.weight.as<float>(), norm.bias ? norm.bias.as<float>() : nullptr},
       .stats = kernels.norm_stats(x, format, dim, norm.kind, norm.eps),
       .cos = nullptr,
       .sin = nullptr,
       .rotary = 0,
       .interleaved = false,
       .out = out});
}

}  // namespace octavo::cpu
