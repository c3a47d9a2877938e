// The sample operator of the CPU backend: many rows at a time, or one row cut into pieces; never a sort of
// the vocabulary.
#pragma once

#include "kernels/ops.h"

namespace octavo::cpu {

Result<> reserve_sampling(Device& device, std::int64_t rows, std::int64_t vocab);
void sample(Stream& stream, const SampleArgs& args);

}  // namespace octavo::cpu
