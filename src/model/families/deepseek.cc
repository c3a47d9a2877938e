// DeepSeek and models with its blocks.
// DeepSeekMoE (2024): plain attention, many small experts that softmax selects, and shared experts.
// DeepSeek-V2 (2024): latent attention, and experts from a few groups.
// DeepSeek-V3 (2024), Moonlight, Kimi K2, GLM-4.7-Flash (Glm4MoeLite, 2026): router scores by sigmoid, with
// a learned bias that only affects the selection.
// DeepSeek-V3.2 (2025), GLM-5 (2026): V3 with an indexer that selects index_topk tokens.
// dots.llm1 (2025): V3's experts and plain attention.
// Mistral 4 (2026): router scores by softmax, and a factor of queries that grows with the position.
#include <algorithm>
#include <cmath>
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Reads a head size. HeadMatmulArgs requires a multiple of kHeadRows.
Result<int> read_head_rows(const Config& config, std::string_view field, int most,
                           std::optional<int> fallback = {}) {
  TRY(const int size, config.integer(field, {1, most}, fallback));
  if (size % kHeadRows != 0)
    return field_failure(field, ErrorCode::unsupported, "{} is {}, but must be a multiple of {}",
                         config.where(field), size, kHeadRows);
  return size;
}

// Returns yarn's factor of attention scores: (0.1 * mscale_all_dim * ln(factor) + 1)^2.
Result<double> score_stretch(const Config& config, const RopeSpec& rope) {
  if (rope.scaling.kind != RopeScalingKind::yarn || rope.scaling.factor <= 1) return 1.0;
  TRY(std::optional<Config> scaling, config.object("rope_scaling"));
  if (!scaling) {
    TRY(scaling, config.object("rope_parameters"));
  }
  TRY(const double all_dim, scaling->number("mscale_all_dim", {0, 100}, 0.0));
  const double stretch = 0.1 * all_dim * std::log(rope.scaling.factor) + 1;
  return stretch * stretch;
}

// Returns which layers have an indexer, from indexer_types or index_topk_pattern. Without these fields, the
// first of every index_topk_freq layers has an indexer, counted from layer index_skip_topk_offset - 1. A
// layer without an indexer uses the selection of the previous layer.
Result<std::vector<bool>> indexed_layers(const Config& config, std::size_t layers) {
  const std::string_view field = config.has("indexer_types") ? "indexer_types" : "index_topk_pattern";
  std::vector<std::string> types;
  if (const auto letters = config.text(field, "")) {  // for example "FSSF"
    for (const char letter : *letters) types.emplace_back(1, letter);
  } else {
    TRY(types, config.texts(field));
  }
  TRY(const int step, config.integer("index_topk_freq", {1, 1024}, 1));
  TRY(const int offset, config.integer("index_skip_topk_offset", {1, 1024}, 2));
  if (!types.empty() && types.size() != layers)
    return invalid(field, "{} has {} entries, but the model has {} layers", config.where(field), types.size(),
                   layers);
  std::vector<bool> indexed;
  for (int i = 0; std::cmp_less(i, layers); ++i) {
    const std::string type = types.empty() ? "" : types[static_cast<std::size_t>(i)];
    const bool own = types.empty() ? std::max(i - offset + 1, 0) % step == 0 : type == "full" || type == "F";
    if (!types.empty() && !own && type != "shared" && type != "S")
      return field_failure(field, ErrorCode::unsupported,
                           "{} has \"{}\", which is not supported: must be full or shared",
                           config.where(field), type);
    if (i == 0 && !own)
      return invalid(field, "{}: layer 0 is \"shared\", but no earlier layer is \"full\"",
                     config.where(field));
    indexed.push_back(own);
  }
  return indexed;
}

// `interleaved` is the default for how RoPE pairs elements in heads of the indexer.
Result<ModelSpec> describe_sparse(const Config& config, bool interleaved) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  const int rotary = spec.ropes[0].rotary_dim;
  Indexer indexer{.rope = 1, .norm = {.kind = NormKind::layer, .eps = 1e-6F, .bias = true}};
  TRY(indexer.heads, config.integer("index_n_heads", {1, kMaxIndexHeads}));
  TRY(indexer.head_dim, config.integer("index_head_dim", {rotary, kMaxLatentDim}));
  TRY(indexer.chosen, config.integer("index_topk", {1, 1 << 20}));
  if (indexer.head_dim % 8 != 0)
    return field_failure("index_head_dim", ErrorCode::unsupported, "{} is {}, but must be a multiple of 8",
                         config.where("index_head_dim"), indexer.head_dim);
  spec.ropes.push_back(spec.ropes[0]);
  TRY(spec.ropes[1].interleaved, config.boolean("indexer_rope_interleave", interleaved));
  TRY(const std::vector<bool> indexed, indexed_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    auto& attention = std::get<LatentAttention>(spec.layers[i].mixer);
    if (attention.q_rank == 0)
      return invalid("q_lora_rank", "{} is missing, but an indexer needs it", config.where("q_lora_rank"));
    attention.indexer = indexer;
    if (indexed[i]) {
      if (spec.predictor) spec.predictor->like = i;  // layer i has an indexer
      continue;
    }
    attention.indexer->heads = 0;
    // Checkpoints have an indexer in these layers too, which is not used.
    spec.names.ignorable.push_back(fmt::format("model.layers.{}.self_attn.indexer.*", i));
  }
  return spec;
}

}  // namespace

Result<ModelSpec> describe_latent(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.head_dim = "qk_rope_head_dim"}));
  LatentAttention a{.heads = spec.layers[0].attention().q_heads,
                    .rope_dim = spec.layers[0].attention().head_dim,
                    .norm = {.kind = NormKind::rms, .eps = 1e-6F},
                    .rope = 0};
  if (config.has("q_lora_rank")) {
    TRY(a.q_rank, config.integer("q_lora_rank", kDim));
  }
  TRY(a.kv_rank, read_head_rows(config, "kv_lora_rank", kMaxLatentDim));
  TRY(a.nope_dim, config.integer("qk_nope_head_dim", {1, kMaxLatentDim}));
  TRY(a.value_dim, read_head_rows(config, "v_head_dim", kMaxLatentDim, spec.dim / a.heads));
  TRY(a.bias, config.boolean("attention_bias", false));
  TRY(const double stretch, score_stretch(config, spec.ropes[0]));
  a.scale = static_cast<float>(stretch / std::sqrt(static_cast<double>(a.q_dim())));
  for (LayerSpec& layer : spec.layers) layer.mixer = a;
  TRY(spec.ropes[0].interleaved, config.boolean("rope_interleave", true));
  return spec;
}

Result<> set_deepseek_experts(ModelSpec& spec, const Config& config, RouterScores scores) {
  if (!config.has("n_routed_experts")) return {};
  TRY_VOID(support(config, "scoring_func", scores == RouterScores::sigmoid ? "sigmoid" : "softmax"));
  Experts experts{.count = 0, .router = {.scores = scores}, .expert = spec.layers.back().mlp()};
  RouterRule& rule = experts.router;
  TRY(experts.count, config.integer("n_routed_experts", {1, kMaxExperts}));
  TRY(rule.chosen, config.integer("num_experts_per_tok", {1, experts.count}, 1));
  TRY(experts.expert.hidden, config.integer("moe_intermediate_size", kDim));
  TRY(rule.renormalise, config.boolean("norm_topk_prob", false));
  if (config.has("routed_scaling_factor")) {
    TRY(rule.scale, multiplier(config, "routed_scaling_factor"));
  }
  TRY(rule.groups, config.integer("n_group", {1, experts.count}, 1));
  TRY(rule.groups_kept, config.integer("topk_group", {1, rule.groups}, rule.groups));
  if (experts.count % rule.groups != 0)
    return invalid("n_group", "{} {} must divide n_routed_experts {}", config.where("n_group"), rule.groups,
                   experts.count);
  if (rule.chosen > rule.groups_kept * (experts.count / rule.groups))
    return invalid("topk_group",
                   "{} is too small: {} groups of {} experts have fewer experts than num_experts_per_tok {}",
                   config.where("topk_group"), rule.groups_kept, experts.count / rule.groups, rule.chosen);
  if (scores == RouterScores::sigmoid) {
    rule.group_best = 2;
    experts.choice_bias = true;
  }
  TRY(const int shared, config.integer("n_shared_experts", {0, kMaxExperts}, 0));
  if (shared > 0) {
    experts.shared = experts.expert;
    experts.shared->hidden *= shared;
  }
  TRY(const std::vector<bool> sparse, sparse_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < sparse.size(); ++i)
    if (sparse[i]) spec.layers[i].feed_forward = experts;
  spec.names.of<Experts>().shared_up = {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"};
  spec.names.of<Experts>().shared_down = "mlp.shared_experts.down_proj";
  // Prediction layers have the indices after the last layer of the network.
  TRY(const int predictors, config.integer("num_nextn_predict_layers", {0, 64}, 1));
  for (int i = 0; i < predictors; ++i)
    spec.names.ignorable.push_back(fmt::format("model.layers.{}.*", std::ssize(spec.layers) + i));
  if (config.has("num_nextn_predict_layers") && predictors > 0) {
    const std::string layer = fmt::format("layers.{}.", spec.layers.size());
    spec.predictor = {
        .like = spec.layers.size() - 1,
        .layer = layer,
        .names = {.token_norm = layer + "enorm", .hidden_norm = layer + "hnorm", .joint = layer + "eh_proj"},
        .final_norm = layer + "shared_head.norm"};
  }
  return {};
}

static Result<ModelSpec> describe_deepseek_v1(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::softmax));
  return spec;
}

Result<ModelSpec> describe_deepseek_v2(const Config& config) {
  TRY(ModelSpec spec, describe_latent(config));
  TRY(const bool bias, config.boolean("mlp_bias", false));
  if (bias)
    return field_failure("mlp_bias", ErrorCode::unsupported,
                         "{} is true, but biases of MLPs are not supported for this model",
                         config.where("mlp_bias"));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::softmax));
  TRY(const std::string method, config.text("topk_method", "greedy"));
  if (method != "greedy" && method != "group_limited_greedy")
    return field_failure("topk_method", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported here: must be greedy or group_limited_greedy",
                         config.where("topk_method"), method);
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward); experts && method == "greedy")
      experts->router.groups = experts->router.groups_kept = 1;
  return spec;
}

Result<ModelSpec> describe_deepseek_v3(const Config& config) {
  TRY(ModelSpec spec, describe_latent(config));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  return spec;
}

static Result<ModelSpec> describe_deepseek_v32(const Config& config) {
  return describe_sparse(config, false);
}
Result<ModelSpec> describe_glm_dsa(const Config& config) { return describe_sparse(config, true); }

Result<ModelSpec> describe_mistral4(const Config& config) {
  TRY(ModelSpec spec, describe_latent(config));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::softmax));
  TRY(spec.temperature, read_temperature(config));
  for (LayerSpec& layer : spec.layers) {
    std::get<LatentAttention>(layer.mixer).temperature = spec.temperature.length > 0;
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->router.group_best = 2;
  }
  spec.other_names = spec.names;  // tensor names in checkpoints that store each expert as separate tensors
  spec.names.of<Experts>().storage = ExpertStorage::stacked;
  spec.names.of<Experts>().up = {"mlp.experts.gate_up_proj"};
  spec.names.of<Experts>().down = "mlp.experts.down_proj";
  return spec;
}

static Result<ModelSpec> describe_dots1(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  TRY(const int first, config.integer("max_window_layers", {0, 1 << 27}, 1 << 27));
  TRY_VOID(set_windows(spec, config, [first](int layer) { return layer >= first; }));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  return spec;
}

std::span<const Family> deepseek_families() {
  static constexpr Family kRows[] = {
      {"DeepseekForCausalLM", describe_deepseek_v1},
      {"DeepseekV2ForCausalLM", describe_deepseek_v2},
      {"DeepseekV32ForCausalLM", describe_deepseek_v32},
      {"DeepseekV3ForCausalLM", describe_deepseek_v3},
      {"Dots1ForCausalLM", describe_dots1},
      {"Glm4MoeLiteForCausalLM", describe_deepseek_v3},
      {"GlmMoeDsaForCausalLM", describe_glm_dsa},
      {"Mistral4ForCausalLM", describe_mistral4},
      {"YoutuForCausalLM", describe_deepseek_v3},
  };
  return kRows;
}

}  // namespace octavo
