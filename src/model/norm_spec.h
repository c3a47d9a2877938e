// Specs of norms.
#pragma once

#include "kernels/kinds.h"

namespace octavo {

// A norm: it has a weight, and a bias if requested. weight_offset is added to the stored weight (Gemma stores
// w and multiplies by 1 + w). If no weight is stored, it is 1.
struct NormSpec {
  NormKind kind = NormKind::none;
  float eps = 0;
  bool bias = false;
  float weight_offset = 0;
  bool stored = true;
};

}  // namespace octavo
