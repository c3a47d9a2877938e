// The specification of the sample operator: sorts the vocabulary and walks it.
#pragma once

#include "kernels/ops.h"

namespace octavo::reference {

void sample(Stream& stream, const SampleArgs& args);

}  // namespace octavo::reference
