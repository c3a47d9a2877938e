// DeepSeek-V4 (2026): attention over a window and over compressed entries, which an indexer selects in some
// layers; several residual streams; and, in the first layers, experts that are selected by the token's id.
#include <cmath>
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr Config::Range kRate{2, 1024};

// Number of tokens per compressed entry, for each layer. 0 means that the layer has no entries.
struct Rates {
  std::vector<int> layers = {};
  int chosen = 0;  // number of tokens per entry in layers with an indexer
};

Result<Rates> read_rates(const Config& config, std::size_t layers) {
  Rates rates{.chosen = 4};
  int all = 128;
  TRY(const std::optional<Config> named, config.object("compress_rates"));
  if (named) {
    TRY(rates.chosen, named->integer("compressed_sparse_attention", kRate, rates.chosen));
    TRY(all, named->integer("heavily_compressed_attention", kRate, all));
  }
  TRY(rates.layers, config.integers("compress_ratios", {0, kRate.most}));
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  const bool listed = !rates.layers.empty();
  for (const std::string& type : types) {
    if (listed) break;
    if (type != "sliding_attention" && type != "compressed_sparse_attention" &&
        type != "heavily_compressed_attention")
      return field_failure("layer_types", ErrorCode::unsupported,
                           "{} has \"{}\", which is not supported: must be sliding_attention, "
                           "compressed_sparse_attention or heavily_compressed_attention",
                           config.where("layer_types"), type);
    rates.layers.push_back(type == "sliding_attention"             ? 0
                           : type == "compressed_sparse_attention" ? rates.chosen
                                                                   : all);
  }
  // By default, the first two layers have long entries. After them, layers with an indexer alternate with
  // layers with long entries.
  for (std::size_t i = 0; !listed && types.empty() && i < layers; ++i)
    rates.layers.push_back(i > 2 && i % 2 == 1 ? rates.chosen : all);
  if (rates.layers.size() < layers)
    return invalid("layer_types", "{} and compress_ratios have {} entries, but the model has {} layers",
                   config.where("layer_types"), rates.layers.size(), layers);
  for (const int rate : rates.layers)
    if (rate != 0 && rate != rates.chosen && rate != all)
      return field_failure("compress_ratios", ErrorCode::unsupported,
                           "{} has {}, which is not supported: must be 0, {} or {}",
                           config.where("compress_ratios"), rate, rates.chosen, all);
  return rates;
}

// Reads the rotary embedding of layers without entries, and then of layers with entries.
Result<std::vector<RopeSpec>> read_ropes(const Config& config, int rotary_dim, int positions) {
  constexpr std::string_view kCompressTheta = "compress_rope_theta";
  TRY(const std::optional<Config> parameters, config.object("rope_parameters"));
  // if false, the scaling applies only to layers with entries
  const bool by_kind = parameters && parameters->has("main");
  TRY(const RopeSpec plain,
      read_rope(config, {}, rotary_dim, positions, by_kind ? "main" : "sliding_attention"));
  TRY(RopeSpec compressed, read_rope(config, {.theta = kCompressTheta}, rotary_dim, positions, "compress"));
  if (!by_kind) {
    TRY(compressed.theta, config.number(kCompressTheta, {1, 1e12}));
  }
  compressed.scaling.attention_factor = 1;
  return std::vector{plain, compressed};
}

Result<Experts> read_hashed_experts(const Config& config, const Mlp& like) {
  Experts experts{
      .count = 0, .router = {.renormalise = true, .scores = RouterScores::sqrt_softplus}, .expert = like};
  TRY(const std::string function, config.text("scoring_func", "sqrtsoftplus"));
  if (function != "sqrtsoftplus")
    return field_failure("scoring_func", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported here: must be sqrtsoftplus",
                         config.where("scoring_func"), function);
  TRY(experts.count, config.integer("n_routed_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("num_experts_per_tok", {1, experts.count}));
  TRY(experts.router.scale, multiplier(config, "routed_scaling_factor"));
  TRY(const double limit, config.number("swiglu_limit", {1e-3, 1e9}));
  experts.expert.limit = static_cast<float>(limit);
  TRY(const int shared, config.integer("n_shared_experts", {1, kMaxExperts}));
  experts.shared = experts.expert;
  experts.shared->hidden *= shared;
  return experts;
}

// Returns the layers in which the token's id selects the experts.
Result<std::vector<bool>> hashed_layers(const Config& config, std::size_t layers) {
  TRY(const std::vector<std::string> types, config.texts("mlp_layer_types"));
  TRY(const int first, config.integer("num_hash_layers", {0, 1024}, 3));
  std::vector<bool> hashed;
  for (std::size_t i = 0; i < layers; ++i)
    hashed.push_back(i < types.size() ? types[i] == "hash_moe" : std::cmp_less(i, first));
  return hashed;
}

void name_tensors(Names& names) {
  names.prefixes = {""};
  names.lm_head = "head";
  names.embedding.tokens = "embed";
  names.attention.norm = "attn_norm";
  names.mlp.norm = "ffn_norm";
  names.attention.sinks = "attn.attn_sink";
  names.of<Experts>().router = "ffn.gate";
  names.of<Experts>().choice_bias = "ffn.gate.bias";
  names.of<Experts>().table = "ffn.gate.tid2eid";
  names.of<Experts>().up = {"ffn.experts.{}.w1", "ffn.experts.{}.w3"};
  names.of<Experts>().down = "ffn.experts.{}.w2";
  names.of<Experts>().shared_up = {"ffn.shared_experts.w1", "ffn.shared_experts.w3"};
  names.of<Experts>().shared_down = "ffn.shared_experts.w2";
  names.ignorable.push_back("mtp.*");
}

}  // namespace

static Result<ModelSpec> describe_deepseek_v4(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.hidden = "moe_intermediate_size", .rotary = false}));
  const Attention& plain = spec.layers[0].attention();
  CompressedAttention a{.heads = plain.q_heads,
                        .head_dim = plain.head_dim,
                        .norm = spec.final_norm,
                        .scale = plain.scores.scale};
  TRY(a.q_rank, config.integer("q_lora_rank", kDim));
  TRY(a.window, config.integer("sliding_window", {1, 1 << 20}));
  TRY(a.out_groups, config.integer("o_groups", {1, a.heads}));
  TRY(a.out_rank, config.integer("o_lora_rank", kDim));
  if (a.heads % a.out_groups != 0)
    return invalid("o_groups", "{} {} must divide num_attention_heads {}", config.where("o_groups"),
                   a.out_groups, a.heads);
  TRY(const double rotary, config.number("partial_rotary_factor", {0, 1}, 0.125));
  TRY(const int rotary_dim, config.integer("qk_rope_head_dim", {2, a.head_dim},
                                           static_cast<int>(std::lround(a.head_dim * rotary))));
  TRY(spec.ropes, read_ropes(config, rotary_dim, spec.max_positions));
  Indexer indexer;
  TRY(indexer.heads, config.integer("index_n_heads", {1, kMaxIndexHeads}));
  TRY(indexer.head_dim, config.integer("index_head_dim", {rotary_dim, kMaxLatentDim}));
  TRY(indexer.chosen, config.integer("index_topk", {1, 1 << 20}));
  TRY(const Rates rates, read_rates(config, spec.layers.size()));
  TRY(Experts experts, read_hashed_experts(config, spec.layers[0].mlp()));
  TRY(const std::vector<bool> hashed, hashed_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    a.rate = rates.layers[i];
    a.rope = a.rate > 0 ? 1 : 0;
    a.overlaps = a.rate == rates.chosen;
    a.indexer = a.overlaps ? std::optional(indexer) : std::nullopt;
    experts.vocab = hashed[i] ? spec.vocab : 0;
    experts.choice_bias = !hashed[i];
    spec.layers[i].mixer = a;
    spec.layers[i].feed_forward = experts;
  }
  spec.residual.hyper = {.norm_eps = spec.final_norm.eps};
  TRY(spec.residual.hyper->count, config.integer("hc_mult", {1, kMaxStreams}));
  TRY(spec.residual.hyper->iterations, config.integer("hc_sinkhorn_iters", {1, 1000}));
  TRY(const double eps, config.number("hc_eps", {0, 1}));
  spec.residual.hyper->eps = static_cast<float>(eps);
  name_tensors(spec.names);
  return spec;
}

std::span<const Family> deepseek_v4_families() {
  static constexpr Family kRows[] = {{"DeepseekV4ForCausalLM", describe_deepseek_v4}};
  return kRows;
}

}  // namespace octavo
