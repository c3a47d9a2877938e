// Configuration (spec) of a norm.
#pragma once

#include "kernels/kinds.h"

namespace octavo {

// A norm with a weight, and with a bias if requested. weight_offset is added to the stored weight (Gemma
// stores w and multiplies by 1 + w). If `stored` is false, the weight is 1.
struct NormSpec {
  NormKind kind = NormKind::none;
  float eps = 0;
  bool bias = false;
  float weight_offset = 0;
  bool stored = true;
};

}  // namespace octavo
