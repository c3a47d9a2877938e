// Nemotron-4 and Minitron (NVIDIA, 2024): layer norms with weight 1 + w, RoPE on half of each head, and
// ungated MLPs with squared ReLU.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_nemotron(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.eps = "norm_eps",
                              .norm = {.kind = NormKind::layer, .bias = true, .weight_offset = 1},
                              .rotary_fraction = "partial_rotary_factor"}));
  TRY_VOID(leave_out_gates(spec, config, false));
  return spec;
}

std::span<const Family> nemotron_families() {
  static constexpr Family kRows[] = {{"NemotronForCausalLM", describe_nemotron}};
  return kRows;
}

}  // namespace octavo
