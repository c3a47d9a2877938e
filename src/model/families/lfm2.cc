// LFM2 (Liquid AI, 2025): short convolutions, with attention in some layers. Variants have experts.
#include <algorithm>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

Result<ModelSpec> describe_lfm(const Config& config, std::string_view hidden) {
  TRY(ModelSpec spec, describe_dense(config, {.hidden = hidden, .eps = "norm_eps"}));
  TRY(spec.logits.tied, config.boolean("tie_embedding", spec.logits.tied));
  constexpr std::string_view kKinds[] = {"conv", "full_attention"};
  TRY(const std::vector<std::string> kinds,
      read_layer_kinds(config, "layer_types", kKinds, spec.layers.size()));
  TRY(const std::vector<int> full, config.integers("full_attn_idxs", {0, 1024}));
  ShortConv conv;
  TRY(conv.width, config.integer("conv_L_cache", {2, kMaxConvWidth}));
  TRY(conv.bias, config.boolean("conv_bias"));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
    const bool listed = full.empty() || std::ranges::count(full, static_cast<int>(i)) > 0;
    if (kinds.empty() ? !listed : kinds[i] == "conv") layer.mixer = conv;
  }
  Names& names = spec.names;
  names.final_norm = "embedding_norm";
  names.attention.norm = "operator_norm";
  names.mlp.norm = "ffn_norm";
  names.attention.q_norm = "self_attn.q_layernorm";
  names.attention.k_norm = "self_attn.k_layernorm";
  names.attention.out = "self_attn.out_proj";
  names.mlp.up = {"feed_forward.w1", "feed_forward.w3"};
  names.mlp.down = "feed_forward.w2";
  return spec;
}

}  // namespace

Result<ModelSpec> describe_lfm2(const Config& config) {
  const bool first_name = config.has("block_ff_dim");
  TRY(ModelSpec spec, describe_lfm(config, first_name ? "block_ff_dim" : "intermediate_size"));
  TRY(const bool adjust, config.boolean("block_auto_adjust_ff_dim"));
  if (!adjust) return spec;
  std::int64_t hidden = 2 * std::int64_t{spec.layers[0].mlp().hidden} / 3;
  if (config.has("block_ffn_dim_multiplier")) {
    TRY(const double factor, config.number("block_ffn_dim_multiplier", {1e-3, 1e3}));
    TRY(const int multiple, config.integer("block_multiple_of", kDim));
    hidden = (static_cast<std::int64_t>(factor * static_cast<double>(hidden)) + multiple - 1) / multiple *
             multiple;
  }
  if (hidden < kDim.least || hidden > kDim.most)
    return invalid("block_ffn_dim_multiplier", "{} makes MLPs of {} units, but an MLP must have {} to {}",
                   config.where("block_ffn_dim_multiplier"), hidden, kDim.least, kDim.most);
  for (LayerSpec& layer : spec.layers) layer.mlp().hidden = static_cast<int>(hidden);
  return spec;
}

// LFM2-ColBERT (Liquid AI, 2025) has one vector per token. A folder of Sentence Transformers (PyLate)
// contains the last matrix.
static Result<ModelSpec> describe_colbert_lfm2(const Config& config) {
  TRY(ModelSpec spec, describe_lfm2(config));
  spec = as_embedder(std::move(spec));
  spec.head = Head{.each_token = true, .normalise = true};
  return spec;
}

// LFM2.5-Embedding (Liquid AI, 2026): attention and convolutions see tokens on both sides.
static Result<ModelSpec> describe_lfm2_both_ways(const Config& config) {
  TRY(ModelSpec spec, describe_lfm2(config));
  for (LayerSpec& layer : spec.layers)
    if (auto* conv = std::get_if<ShortConv>(&layer.mixer))
      conv->ahead = (conv->width - 1) / 2;
    else
      layer.attention().mask.causal = false;
  spec = as_embedder(std::move(spec));
  spec.head->pool = Pool::first;
  return spec;
}

static Result<ModelSpec> describe_lfm2_moe(const Config& config) {
  TRY(ModelSpec spec, describe_lfm(config, "intermediate_size"));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "moe_intermediate_size"));
  experts.router.scores = RouterScores::sigmoid;
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob"));
  TRY(experts.router.scale, multiplier(config, "routed_scaling_factor"));
  TRY(experts.choice_bias, config.boolean("use_expert_bias"));
  TRY(const int dense, config.integer("num_dense_layers", {0, 1024}));
  for (std::size_t i = static_cast<std::size_t>(dense); i < spec.layers.size(); ++i)
    spec.layers[i].feed_forward = experts;
  spec.names.of<Experts>().router = "feed_forward.gate";
  spec.names.of<Experts>().choice_bias = "feed_forward.expert_bias";
  spec.names.of<Experts>().up = {"feed_forward.experts.{}.w1", "feed_forward.experts.{}.w3"};
  spec.names.of<Experts>().down = "feed_forward.experts.{}.w2";
  return spec;
}

std::span<const Family> lfm2_families() {
  static constexpr Family kRows[] = {
      {"ColBERTLfm2Model", describe_colbert_lfm2},
      {"Lfm2BidirectionalModel", describe_lfm2_both_ways},
      {"Lfm2ForCausalLM", describe_lfm2},
      {"Lfm2MoeForCausalLM", describe_lfm2_moe},
  };
  return kRows;
}

}  // namespace octavo
