// Bamba (IBM and others, 2024): Mamba2, with attention in some layers. Falcon-H1 (TII, 2025): attention and
// Mamba2 in parallel in every layer, and many multipliers.
#include <algorithm>

#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

constexpr Config::RealRange kMultipliers{-1e6, 1e6};

// Reads the fields that both families have.
Result<ModelSpec> describe_bamba_like(const Config& config, const Dialect& dialect) {
  TRY(ModelSpec spec, describe_dense(config, dialect));
  TRY(const bool attention_bias, config.boolean("attention_bias"));
  TRY(const bool mlp_bias, config.boolean("mlp_bias"));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = attention_bias, .out = attention_bias};
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  spec.names.final_norm = "final_layernorm";
  spec.names.mlp.norm = "pre_ff_layernorm";
  spec.names.mlp.up = {"feed_forward.gate_proj", "feed_forward.up_proj"};
  spec.names.mlp.down = "feed_forward.down_proj";
  return spec;
}

// Reads `count` multipliers. All are 1 if the field is null.
Result<std::vector<float>> read_multipliers(const Config& config, std::string_view field, std::size_t count) {
  if (!config.has(field)) return std::vector<float>(count, 1);
  TRY(const std::vector<double> numbers, config.numbers(field, count, kMultipliers));
  return std::vector<float>(numbers.begin(), numbers.end());
}

}  // namespace

static Result<ModelSpec> describe_bamba(const Config& config) {
  TRY(ModelSpec spec, describe_bamba_like(config, {.rotary_fraction = "partial_rotary_factor"}));
  TRY(const std::int64_t inner, read_mamba_inner(config, spec.dim));
  TRY(const Mamba2 mamba, read_mamba2(config, {}, inner, spec.final_norm));
  TRY(const std::vector<int> full, config.integers("attn_layer_indices", {0, 1024}));
  for (int i = 0; i < std::ssize(spec.layers); ++i)
    if (std::ranges::count(full, i) == 0) spec.layers[static_cast<std::size_t>(i)].mixer = mamba;
  return spec;
}

static Result<ModelSpec> describe_falcon_h1(const Config& config) {
  TRY(ModelSpec spec, describe_bamba_like(config, {}));
  TRY(std::int64_t inner, read_mamba_inner(config, spec.dim));
  if (config.has("mamba_d_ssm")) {
    TRY(inner, config.integer("mamba_d_ssm", {1, 1 << 20}));
  }
  TRY(const bool norm, config.boolean("mamba_rms_norm"));
  TRY(Mamba2 mamba, read_mamba2(config, {}, inner, norm ? spec.final_norm : NormSpec{}));
  TRY(const bool norm_first, config.boolean("mamba_norm_before_gate"));
  mamba.gate_first = !norm_first;
  TRY(const bool out_bias, config.boolean("projectors_bias"));
  TRY(const float in, multiplier(config, "ssm_in_multiplier"));
  TRY(const std::vector<float> parts, read_multipliers(config, "ssm_multipliers", 5));
  for (std::size_t i = 0; i < parts.size(); ++i) mamba.multipliers[i] = in * parts[i];
  TRY(const std::vector<float> of_mlp, read_multipliers(config, "mlp_multipliers", 2));
  TRY(const float attention_in, multiplier(config, "attention_in_multiplier"));
  TRY(const float attention_out, multiplier(config, "attention_out_multiplier"));
  TRY(const float key, multiplier(config, "key_multiplier"));
  TRY(const float out, multiplier(config, "ssm_out_multiplier"));
  const Attention& attention = spec.layers[0].attention();
  if (out_bias != mamba.bias || (attention.biases.qkv && attention_in != 1) || (mamba.bias && in != 1))
    return field_failure(
        "projectors_bias", ErrorCode::unsupported,
        "{}: projections with multipliers cannot have biases here, and either all or no projections can",
        config.where("projectors_bias"));
  for (LayerSpec& layer : spec.layers) {
    // RoPE and products are linear, so factors of inputs are applied to outputs.
    layer.attention().scores.scale *= attention_in * attention_in * key;
    layer.scales.mixer = attention_in * attention_out;
    layer.second_mixer = mamba;
    layer.scales.second_mixer = out;
    layer.mlp().gate_scale = of_mlp[0];
    layer.scales.feed_forward = of_mlp[1];
  }
  TRY(spec.embedding.scale, multiplier(config, "embedding_multiplier"));
  TRY(spec.logits.scale, multiplier(config, "lm_head_multiplier"));
  return spec;
}

std::span<const Family> bamba_families() {
  static constexpr Family kRows[] = {
      {"BambaForCausalLM", describe_bamba},
      {"FalconH1ForCausalLM", describe_falcon_h1},
  };
  return kRows;
}

}  // namespace octavo
