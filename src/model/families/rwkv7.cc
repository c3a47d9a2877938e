// RWKV-7 (Peng et al., 2025), in flash-linear-attention's format.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

Result<> check_fields(const Config& config, int dim) {
  if (config.has("attn"))
    return field_failure("attn", ErrorCode::unsupported, "{}: layers with attention are not supported",
                         config.where("attn"));
  TRY(const std::string activation, config.text("hidden_act"));
  if (activation != "sqrelu")
    return field_failure("hidden_act", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be sqrelu", config.where("hidden_act"),
                         activation);
  std::vector<int> widths;
  if (config.is_list("value_dim")) {
    TRY(widths, config.integers("value_dim", kDim));
  } else if (config.has("value_dim")) {
    TRY(const int width, config.integer("value_dim", kDim));
    widths = {width};
  }
  for (const int width : widths)
    if (width != dim)
      return field_failure("value_dim", ErrorCode::unsupported,
                           "{} is {}, which is not supported: must be hidden_size, {}",
                           config.where("value_dim"), width, dim);
  return {};
}

}  // namespace

static Result<ModelSpec> describe_rwkv7(const Config& config) {
  ModelSpec spec;
  TRY(spec.dim, config.integer("hidden_size", kDim));
  TRY_VOID(check_fields(config, spec.dim));
  TRY(spec.vocab, config.integer("vocab_size", {1, kMaxVocab}));
  TRY(spec.logits.tied, config.boolean("tie_word_embeddings", false));
  TRY(const int layers, config.integer("num_hidden_layers", {1, 1024}));
  TRY(const double eps, config.number("norm_eps", {0, 1}));
  TRY(const bool bias, config.boolean("norm_bias"));
  TRY(const bool normed_embedding, config.boolean("norm_first"));
  TRY(const bool fused, config.boolean("fuse_norm"));
  TRY(const double ratio, config.number("hidden_ratio", {1.0 / 64, 64}));
  spec.max_positions = 1 << 20;  // a limit is required, but no part of the network depends on the length
  spec.final_norm = {.kind = NormKind::layer, .eps = static_cast<float>(eps), .bias = bias};
  if (normed_embedding) spec.embedding.norm = spec.final_norm;

  TimeMix mix{.unit_eps = fused ? 1e-6F : 1e-24F, .norm = {.kind = NormKind::layer, .bias = true}};
  TRY(mix.head_dim, config.integer("head_dim", {1, kMaxStateDim}));
  if (spec.dim % mix.head_dim != 0)
    return invalid("head_dim", "{} {} must divide hidden_size {}", config.where("head_dim"), mix.head_dim,
                   spec.dim);
  mix.heads = spec.dim / mix.head_dim;
  mix.norm.eps = static_cast<float>(mix.head_dim * eps);
  TRY(mix.decay_rank, config.integer("decay_low_rank_dim", kDim));
  TRY(mix.rate_rank, config.integer("a_low_rank_dim", kDim));
  TRY(mix.value_rank, config.integer("v_low_rank_dim", kDim));
  TRY(mix.gate_rank, config.integer("gate_low_rank_dim", kDim));
  ChannelMix channels{.mlp = {.activation = Activation::relu_squared, .gated = false}};
  const int derived = (static_cast<int>(spec.dim * ratio) + 31) / 32 * 32;
  TRY(channels.mlp.hidden, config.integer("intermediate_size", kDim, derived));
  spec.layers.assign(static_cast<std::size_t>(layers),
                     {.mixer = mix, .feed_forward = channels, .pre_norm = spec.final_norm});
  std::get<TimeMix>(spec.layers[0].mixer).first = true;

  Names& names = spec.names;
  names.embedding.tokens = "embeddings";
  names.embedding.norm = "layers.0.pre_norm";
  names.attention.norm = "attn_norm";
  names.mlp.norm = "ffn_norm";
  names.mlp.up = {"ffn.key"};
  names.mlp.down = "ffn.value";
  // The first layer has no earlier layer to mix values with, so these tensors are not used.
  names.ignorable.push_back("model.layers.0.attn.v_lora.*");
  // In older files, the six vectors are one tensor.
  spec.other_names = names;
  spec.other_names->of<TimeMix>().shares = {"attn.x_x"};
  return spec;
}

std::span<const Family> rwkv7_families() {
  static constexpr Family kRows[] = {{"RWKV7ForCausalLM", describe_rwkv7}};
  return kRows;
}

}  // namespace octavo
