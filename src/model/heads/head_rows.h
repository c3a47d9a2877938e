// Rows of the residual after the last layer, which heads read.
#pragma once

#include "model/part.h"
#include "model/residual/half.h"

namespace octavo {

struct HeadRows {};     // f32 [logit rows, dim]
struct HeadFactors {};  // HeadRows in the format of activations, for matrix products

// Returns the residual after the final norm, act [tokens, dim].
inline View normed_rows(const Step& step, const NormParameter& final_norm) {
  const View x = step.slot<HalfInput>();
  step.residual.look(final_norm.norm(), x);
  return x;
}
inline void norm_rows(const Step& step, const NormParameter& final_norm) {
  if (const Norm norm = final_norm.norm(); norm.kind != NormKind::none)
    step.backend.ops.add_norm(*step.backend.stream,
                              {.residual = step.residual.rows(), .norm = norm, .replace = true});
}

}  // namespace octavo
