// Phi-3 and Phi-4 (Abdin et al., 2024): fused projections, longrope, windows in the smaller ones.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_phi3(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.eps_default = 1e-5}));
  TRY_VOID(set_windows(spec, config, [](int) { return true; }));
  spec.names.qkv = {"self_attn.qkv_proj"};
  spec.names.up = {"mlp.gate_up_proj"};
  return spec;
}

}  // namespace octavo
