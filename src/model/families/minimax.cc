// MiniMax (2025), with Mixtral's tensor names. Text-01 and M1 have lightning attention in most layers, and
// each norm replaces the residual by its output. M2 has only softmax attention, experts that sigmoid selects
// with a learned bias, and norms over whole rows of queries and keys.
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

// Returns the layers with lightning attention, from a list of names, or of numbers (0 means lightning
// attention).
Result<std::vector<bool>> lightning_layers(const Config& config, std::size_t layers) {
  constexpr std::array<std::string_view, 2> kKinds{"linear_attention", "full_attention"};
  TRY(const std::vector<std::string> kinds, read_layer_kinds(config, "layer_types", kKinds, layers));
  TRY(const std::vector<int> numbers, config.integers("attn_type_list", {0, 1}));
  if (kinds.empty() && !numbers.empty() && numbers.size() != layers)
    return invalid("attn_type_list", "{} has {} entries, but the model has {} layers",
                   config.where("attn_type_list"), numbers.size(), layers);
  std::vector<bool> lightning;
  for (std::size_t i = 0; i < layers; ++i)
    lightning.push_back(!kinds.empty()    ? kinds[i] == kKinds[0]
                        : numbers.empty() ? i % 2 == 1
                                          : numbers[i] == 0);
  return lightning;
}

// Returns the decay rate of each head. Heads and layers with higher indices decay more slowly.
std::vector<float> lightning_rates(int heads, std::size_t layer, std::size_t layers) {
  const double depth = 1 - static_cast<double>(layer) / (static_cast<double>(layers - 1) + 1e-5) + 1e-5;
  std::vector<float> rates;
  for (int head = 1; head <= heads; ++head)
    rates.push_back(static_cast<float>(std::exp2(-8.0 * head / heads) * depth));
  return rates;
}

// The residual becomes alpha * norm(residual) + beta * (output of the mixer or the feed-forward).
struct Factors {
  float alpha = 1, beta = 1;
};
Result<Factors> read_factors(const Config& config, std::string_view half) {
  Factors factors;
  TRY(factors.alpha, multiplier(config, fmt::format("{}_alpha_factor", half)));
  TRY(factors.beta, multiplier(config, fmt::format("{}_beta_factor", half)));
  return factors;
}

}  // namespace

static Result<ModelSpec> describe_minimax(const Config& file) {
  const Config config = file.with_names({{"full_attn_alpha_factor", "layernorm_full_attention_alpha"},
                                         {"full_attn_beta_factor", "layernorm_full_attention_beta"},
                                         {"linear_attn_alpha_factor", "layernorm_linear_attention_alpha"},
                                         {"linear_attn_beta_factor", "layernorm_linear_attention_beta"},
                                         {"mlp_alpha_factor", "layernorm_mlp_alpha"},
                                         {"mlp_beta_factor", "layernorm_mlp_beta"}});
  TRY(ModelSpec spec, describe_mixtral(config));
  const Attention& attention = spec.layers[0].attention();
  LightningAttention lightning{.heads = attention.q_heads,
                               .head_dim = attention.head_dim,
                               .rates = {},
                               .norm = {.kind = NormKind::rms, .eps = 1e-6F}};
  TRY_VOID(set_rotary_dim(spec, config, lightning.head_dim));
  TRY_VOID(refuse(config, "postnorm", false));
  TRY(const int shared, config.integer("shared_intermediate_size", {0, 1 << 20}, 0));
  if (shared > 0)
    return field_failure("shared_intermediate_size", ErrorCode::unsupported,
                         "{} is {}, but shared experts are not supported for this model",
                         config.where("shared_intermediate_size"), shared);
  if (lightning.head_dim > kMaxStateDim || lightning.inner() > kMaxGateDim)
    return field_failure("head_dim", ErrorCode::unsupported,
                         "{}: {} heads of {} elements are too large: lightning attention supports at most {} "
                         "elements per head and {} elements in total",
                         config.where("head_dim"), lightning.heads, lightning.head_dim, kMaxStateDim,
                         kMaxGateDim);
  if (std::get<Experts>(spec.layers[0].feed_forward).expert.activation != Activation::silu)
    return field_failure("hidden_act", ErrorCode::unsupported, "{} must be silu for this model",
                         config.where("hidden_act"));
  TRY(const Factors full, read_factors(config, "full_attn"));
  TRY(const Factors linear, read_factors(config, "linear_attn"));
  TRY(const Factors mlp, read_factors(config, "mlp"));
  TRY(const std::vector<bool> forgets, lightning_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.residual = Residual::from_norm;
    if (forgets[i]) {
      lightning.rates = lightning_rates(lightning.heads, i, spec.layers.size());
      layer.mixer = lightning;
    }
    const Factors& mixer = forgets[i] ? linear : full;
    layer.scales.mixer = mixer.beta / mixer.alpha;
    layer.scales.mixed = mixer.alpha;
    layer.scales.feed_forward = mlp.beta / mlp.alpha;
    layer.scales.passed = mlp.alpha;
  }
  // transformers stores these tables, but they follow from the layer's index.
  for (const char* table : {"slope_rate", "query_decay", "key_decay", "diagonal_decay"})
    spec.names.ignorable.push_back(fmt::format("*.self_attn.{}", table));
  return spec;
}

static Result<ModelSpec> describe_minimax_m2(const Config& config) {
  TRY(ModelSpec spec, describe_mixtral(config));
  const int head_dim = spec.layers[0].attention().head_dim;
  TRY(spec.ropes[0],
      read_rope(config, {.rotary_fraction = "partial_rotary_factor"}, head_dim, spec.max_positions));
  TRY_VOID(set_rotary_dim(spec, config, head_dim));
  TRY_VOID(support(config, "scoring_func", "sigmoid"));
  TRY(const bool biased, config.boolean("use_routing_bias", true));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().mask.window = 0;
    layer.attention().norms = {QkNorm::whole_row, layer.pre_norm};
    auto& experts = std::get<Experts>(layer.feed_forward);
    experts.router.scores = RouterScores::sigmoid;
    experts.choice_bias = biased;
  }
  spec.names.of<Experts>().choice_bias = "block_sparse_moe.e_score_correction_bias";
  return spec;
}

namespace {

// The fields of M3's attention to blocks. transformers writes other names than MiniMax.
Result<SparseAttention> read_sparse_m3(const Config& config, const Attention& attention) {
  TRY(const std::optional<Config> nested, config.object("sparse_attention_config"));
  const auto field = [&](std::string_view published, std::string_view own) {
    return nested && nested->has(published) ? published : own;
  };
  const auto read = [&](std::string_view published, std::string_view own, Config::Range range) {
    return nested && nested->has(published) ? nested->integer(published, range) : config.integer(own, range);
  };
  SparseAttention sparse{.attention = attention};
  TRY(const int heads, read("sparse_num_index_heads", "index_n_heads", kHeads));
  if (heads != attention.kv_heads)
    return field_failure("sparse_num_index_heads", ErrorCode::unsupported,
                         "{} is {}, but must be equal to num_key_value_heads {}",
                         config.where(field("sparse_num_index_heads", "index_n_heads")), heads,
                         attention.kv_heads);
  TRY(sparse.index_dim, read("sparse_index_dim", "index_head_dim", {8, 4096}));
  TRY(sparse.attention.mask.block_tokens, read("sparse_block_size", "index_block_size", {1, 1 << 20}));
  TRY(sparse.attention.mask.chosen_blocks, read("sparse_topk_blocks", "index_topk_blocks", {1, 1 << 12}));
  TRY(sparse.local,
      read("sparse_local_block", "index_local_blocks", {1, sparse.attention.mask.chosen_blocks}));
  if (!nested) return sparse;
  TRY_VOID(support(*nested, "sparse_score_type", "max"));
  TRY(const int first, nested->integer("sparse_init_block", {0, 1 << 12}, 0));
  if (first > 0)
    return field_failure("sparse_init_block", ErrorCode::unsupported, "{} is {}, but must be 0",
                         nested->where("sparse_init_block"), first);
  return sparse;
}

Result<std::vector<bool>> sparse_layers_m3(const Config& config, std::size_t layers) {
  constexpr std::string_view kSparse = "minimax_m3_sparse";
  constexpr std::array kKinds{kSparse, std::string_view("full_attention")};
  TRY(const std::vector<std::string> kinds, read_layer_kinds(config, "layer_types", kKinds, layers));
  TRY(const std::optional<Config> nested, config.object("sparse_attention_config"));
  TRY(const std::vector<int> marks,
      nested ? nested->integers("sparse_attention_freq", {0, 1}) : std::vector<int>());
  if (kinds.empty() && !marks.empty() && marks.size() != layers)
    return invalid("sparse_attention_freq", "{} has {} entries, but the model has {} layers",
                   nested->where("sparse_attention_freq"), marks.size(), layers);
  std::vector<bool> sparse;
  for (std::size_t i = 0; i < layers; ++i)
    sparse.push_back(!kinds.empty() ? kinds[i] == kSparse : !marks.empty() && marks[i] == 1);
  return sparse;
}

}  // namespace

// M3: norms of each head, swigluoai, and attention to blocks of tokens in most layers.
Result<ModelSpec> describe_minimax_m3(const Config& config) {
  TRY_VOID(refuse(config, "attention_output_gate", true));
  TRY_VOID(refuse(config, "use_gemma_norm", false));
  TRY(ModelSpec spec, describe_dense(config, {.hidden = "dense_intermediate_size",
                                              .activation = "",
                                              .norm = {.kind = NormKind::rms, .weight_offset = 1},
                                              .rotary_fraction = "partial_rotary_factor"}));
  Attention attention = spec.layers[0].attention();
  attention.norms = {QkNorm::shared, spec.final_norm};
  TRY(const SparseAttention sparse, read_sparse_m3(config, attention));
  TRY(const std::vector<bool> chooses, sparse_layers_m3(config, spec.layers.size()));
  Mlp mlp = spec.layers[0].mlp();
  mlp.activation = Activation::swigluoai;
  TRY(mlp.alpha, multiplier(config, "swiglu_alpha"));
  TRY(mlp.limit, multiplier(config, "swiglu_limit"));
  TRY(const double beta, config.number("swiglu_beta", {0, 1e3}, 1.0));
  if (beta != 1)
    return field_failure("swiglu_beta", ErrorCode::unsupported, "{} is {}, but must be 1",
                         config.where("swiglu_beta"), beta);
  TRY(Experts experts, read_experts(config, mlp, "intermediate_size"));
  TRY_VOID(support(config, "scoring_func", "sigmoid"));
  experts.router.scores = RouterScores::sigmoid;
  experts.router.renormalise = true;
  TRY(experts.router.scale, multiplier(config, "routed_scaling_factor"));
  TRY(experts.choice_bias, config.boolean("use_routing_bias", true));
  TRY(const int shared, config.integer("n_shared_experts", {0, 64}, 1));
  if (shared > 0) {
    experts.shared = experts.expert;
    TRY(experts.shared->hidden,
        config.integer("shared_intermediate_size", kDim, experts.expert.hidden * shared));
  }
  TRY(const std::vector<bool> has_experts, sparse_layers(config, spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.mixer = chooses[i] ? Mixer(sparse) : Mixer(attention);
    layer.feed_forward = has_experts[i] ? FeedForward(experts) : FeedForward(mlp);
  }
  Experts::Names& names = spec.names.of<Experts>();
  names.router = "block_sparse_moe.gate";
  names.choice_bias = "block_sparse_moe.e_score_correction_bias";
  names.up = {"block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3"};
  names.down = "block_sparse_moe.experts.{}.w2";
  names.shared_up = {"block_sparse_moe.shared_experts.gate_proj", "block_sparse_moe.shared_experts.up_proj"};
  names.shared_down = "block_sparse_moe.shared_experts.down_proj";
  return spec;
}

std::span<const Family> minimax_families() {
  static constexpr Family kRows[] = {
      {"MiniMaxForCausalLM", describe_minimax},       {"MiniMaxM1ForCausalLM", describe_minimax},
      {"MiniMaxM2ForCausalLM", describe_minimax_m2},  {"MiniMaxM3SparseForCausalLM", describe_minimax_m3},
      {"MiniMaxText01ForCausalLM", describe_minimax},
  };
  return kRows;
}

}  // namespace octavo
