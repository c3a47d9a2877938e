// Phi-3 and Phi-4 (Abdin et al., 2024): fused projections, longrope, and sliding windows in the smaller
// models.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_phi3(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.rotary_fraction = "partial_rotary_factor", .yarn_is_longrope = true}));
  TRY_VOID(set_window_of_all(spec, config));
  spec.names.attention.qkv = {"self_attn.qkv_proj"};
  spec.names.mlp.up = {"mlp.gate_up_proj"};
  return spec;
}

std::span<const Family> phi3_families() {
  static constexpr Family kRows[] = {{"Phi3ForCausalLM", describe_phi3}};
  return kRows;
}

}  // namespace octavo
