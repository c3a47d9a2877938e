// MiniMax-M2 (MiniMax, 2025): Mixtral's tensors, experts chosen by sigmoid with a learned bias, norms over
// whole queries and keys, half of each head turns.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_minimax_m2(const Config& config) {
  TRY(ModelSpec spec, describe_mixtral(config));
  const int head_dim = spec.layers[0].attention().head_dim;
  TRY(spec.ropes[0],
      read_rope(config, {.rotary_fraction = "partial_rotary_factor"}, head_dim, spec.max_positions));
  if (config.has("rotary_dim")) {
    RopeSpec& rope = spec.ropes[0];
    TRY(const int rotary_dim, config.integer("rotary_dim", {2, head_dim}));
    if (rotary_dim % 2 != 0)
      return invalid("rotary_dim", "{} is {}; it must be even", config.where("rotary_dim"), rotary_dim);
    if (rope.scaling.kind == RopeScalingKind::longrope && rotary_dim != rope.rotary_dim)
      return invalid("rotary_dim",
                     "{} is {}; the factors of longrope are for the {} of partial_rotary_factor",
                     config.where("rotary_dim"), rotary_dim, rope.rotary_dim);
    rope.rotary_dim = rotary_dim;
  }
  for (LayerSpec& layer : spec.layers) {
    layer.attention().window = 0;
    layer.attention().qk_norm = QkNorm::whole_row;
    layer.attention().qk_norm_spec = layer.pre_norm;
    auto& experts = std::get<Experts>(layer.feed_forward);
    experts.router.scores = RouterScores::sigmoid;
    experts.choice_bias = true;
  }
  spec.names.choice_bias = "block_sparse_moe.e_score_correction_bias";
  return spec;
}

}  // namespace octavo
