// Norms.
#pragma once

#include "kernels/kinds.h"

namespace octavo {

// Norms by kind: weight always, bias on request. weight_offset is added to the stored weight (Gemma stores w
// and multiplies by 1 + w). Where none is stored each weight is 1.
struct NormSpec {
  NormKind kind = NormKind::none;
  float eps = 0;
  bool bias = false;
  float weight_offset = 0;
  bool stored = true;
};

}  // namespace octavo
