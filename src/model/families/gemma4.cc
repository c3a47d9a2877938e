// Language models of Gemma 3n (Google DeepMind, 2025) and Gemma 4 (2026). Some layers read the keys and
// values of other layers, and each token has an additional vector for each layer. 3n also has several
// residual streams, a second path in parallel to attention (Laurel), and sparse MLPs. Gemma 4 has heads of
// two sizes, and may have experts beside the MLPs.
#include <cmath>
#include <numbers>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Dialect kGemma4{.activation = "hidden_activation", .rotary = false};
constexpr Dialect kGemma3n{.hidden = "", .activation = "hidden_activation"};

// Returns the last layer before `first` with the same window as `layer`.
Result<int> source_of(const ModelSpec& spec, int layer, int first) {
  const int window = spec.layers[static_cast<std::size_t>(layer)].attention().mask.window;
  for (int i = first - 1; i >= 0; --i)
    if (spec.layers[static_cast<std::size_t>(i)].attention().mask.window == window) return i;
  return invalid("num_kv_shared_layers",
                 "config.json: layer {1} needs a layer before {0} with the same type of attention", first,
                 layer);
}

// Returns the attention of layers with full attention, whose heads have another size than in layers with
// windows. config.json has separate fields for these sizes or, in transformers' form, an object per layer.
Result<Attention> full_attention(const ModelSpec& spec, const Config& config) {
  Attention full = spec.layers[0].attention();
  full.mask.window = 0;
  TRY(full.keys_are_values, config.boolean("attention_k_eq_v", false));
  TRY(const std::optional<Config> by_layer, config.object("per_layer_config"));
  for (std::size_t i = 0; by_layer && i < spec.layers.size(); ++i) {
    TRY(const std::optional<Config> own, by_layer->object(fmt::format("{}", i)));
    if (!own) continue;
    TRY(full.head_dim, own->integer("head_dim", {1, 1 << 16}, full.head_dim));
    TRY(full.kv_heads, own->integer("num_key_value_heads", {1, full.q_heads}, full.kv_heads));
    return full;
  }
  TRY(full.head_dim, config.integer("global_head_dim", {1, 1 << 16}, 512));
  if (full.keys_are_values) {
    TRY(full.kv_heads, config.integer("num_global_key_value_heads", {1, full.q_heads}, full.kv_heads));
  }
  return full;
}

// Sets norms of queries, keys and values. Layers with full attention use rope 0, layers with windows use rope
// 1.
void set_norms(ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) {
    Attention& a = layer.attention();
    a.rope = a.mask.window == 0 ? 0 : 1;
    a.scores.scale = 1;
    a.norms.qk_kind = QkNorm::shared;
    a.norms.qk = a.norms.v = layer.pre_norm;
    a.norms.v.stored = false;
    layer.post_norm = layer.pre_norm;
  }
  spec.names.attention.post_norm = "post_attention_layernorm";
  spec.names.mlp.norm = "pre_feedforward_layernorm";
  spec.names.mlp.post_norm = "post_feedforward_layernorm";
}

// Sets Gemma 4's full attention, in which RoPE rotates a part of each head.
Result<> set_attention(ModelSpec& spec, const Config& config) {
  TRY_VOID(set_windows(spec, config, [](int layer) { return (layer + 1) % 6 != 0; }));
  spec.layers.back().attention().mask.window = 0;
  TRY(const Attention full, full_attention(spec, config));
  const int sliding_dim = spec.layers[0].attention().head_dim;
  TRY(RopeSpec rope, read_rope(config, kGemma4, full.head_dim, spec.max_positions, "full_attention"));
  TRY(RopeSpec slides, read_rope(config, kGemma4, sliding_dim, spec.max_positions, "sliding_attention"));
  spec.ropes = {std::move(rope), std::move(slides)};
  for (LayerSpec& layer : spec.layers)
    if (layer.attention().mask.window == 0) layer.mixer = full;
  set_norms(spec);
  return {};
}

// The last layers read the keys and values of earlier layers.
Result<> set_sources(ModelSpec& spec, const Config& config) {
  const int layers = static_cast<int>(std::ssize(spec.layers));
  TRY(const int shared, config.integer("num_kv_shared_layers", {0, layers - 1}, 0));
  for (int i = layers - shared; i < layers; ++i) {
    Attention& attention = spec.layers[static_cast<std::size_t>(i)].attention();
    TRY(attention.source, source_of(spec, i, layers - shared));
    attention.keys_are_values = false;
    for (const char* unused : {"k_proj", "v_proj", "k_norm"})
      spec.names.ignorable.push_back(fmt::format("*layers.{}.self_attn.{}.weight", i, unused));
  }
  return {};
}

Result<> set_layer_inputs(ModelSpec& spec, const Config& config) {
  TRY(const int size, config.integer("hidden_size_per_layer_input", {0, 1 << 16}, 0));
  if (size == 0) return {};
  spec.inputs.by_layer = {
      .size = size, .vocab = 0, .norm = spec.final_norm, .activation = spec.layers[0].mlp().activation};
  TRY(spec.inputs.by_layer->vocab, config.integer("vocab_size_per_layer_input", {0, spec.vocab}));
  // transformers divides the values by sqrt(dim) before this norm. A larger epsilon has the same effect.
  spec.inputs.by_layer->norm.eps *= static_cast<float>(spec.dim);
  return {};
}

// Sets what both generations have: scaled embeddings, a soft cap, and the names of a language model in a
// checkpoint with encoders.
Result<> set_ends(ModelSpec& spec, const Config& config) {
  TRY_VOID(refuse(config, "attention_bias", true));
  spec.embedding.scale = std::sqrt(static_cast<float>(spec.dim));
  spec.embedding.scale_rounds = true;
  TRY(spec.logits.soft_cap, soft_cap(config, "final_logit_softcapping"));
  spec.names.prefixes = {"model.", "model.language_model.", "language_model.model."};
  for (const char* other : {"vision_tower", "audio_tower", "embed_vision", "embed_audio"})
    spec.names.ignorable.push_back(fmt::format("model.{}.*", other));
  return {};
}

// Gemma 4 26B-A4B has experts beside the MLP of each layer.
Result<> set_experts(ModelSpec& spec, const Config& config) {
  TRY(const bool experts, config.boolean("enable_moe_block", false));
  if (!experts) return {};
  for (LayerSpec& layer : spec.layers) {
    MlpAndExperts both{.mlp = layer.mlp(),
                       .experts = {.count = 0, .router = {}, .expert = layer.mlp()},
                       .norm = layer.pre_norm};
    Experts& own = both.experts;
    TRY(own.count, config.integer("num_experts", {1, kMaxExperts}));
    TRY(own.router.chosen, config.integer("top_k_experts", {1, own.count}));
    TRY(own.expert.hidden, config.integer("moe_intermediate_size", kDim));
    own.router.renormalise = true;
    own.scales = true;
    own.router_norm = layer.pre_norm;
    layer.feed_forward = both;
  }
  spec.names.of<Experts>().router = "router.proj";
  spec.names.of<Experts>().router_norm = "router.scale";
  spec.names.of<Experts>().scales = "router.per_expert_scale";
  spec.names.of<MlpAndExperts>().mlp_post_norm = "post_feedforward_layernorm_1";
  spec.names.of<MlpAndExperts>().norm = "pre_feedforward_layernorm_2";
  spec.names.of<MlpAndExperts>().post_norm = "post_feedforward_layernorm_2";
  spec.names.of<Experts>().up = {"experts.{}.gate_proj", "experts.{}.up_proj"};
  spec.names.of<Experts>().down = "experts.{}.down_proj";
  spec.other_names = spec.names;  // experts as separate tensors, as in quantised checkpoints
  spec.names.of<Experts>().storage = ExpertStorage::stacked;
  spec.names.of<Experts>().up = {"experts.gate_up_proj"};
  spec.names.of<Experts>().down = "experts.down_proj";
  return {};
}

// Returns the number x for which a fraction `share` of a normal distribution is below x. x is in standard
// deviations above the mean.
float deviations(double share) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < share ? low : high) = middle;
  }
  return static_cast<float>(low);
}

// Reads the width of MLPs and the fraction of gates that are dropped. Each is one number, or a list with one
// number per layer.
Result<> set_widths(ModelSpec& spec, const Config& config) {
  constexpr int kSparseLayers = 10;  // defaults of transformers: the first 10 layers drop 95% of their gates
  constexpr double kShare = 0.95;
  const std::size_t layers = spec.layers.size();
  std::vector<double> shares(layers, 0.0);
  if (layers > kSparseLayers) std::fill_n(shares.begin(), kSparseLayers, kShare);
  if (config.has("activation_sparsity_pattern")) {
    TRY(shares, config.numbers("activation_sparsity_pattern", layers, {0, 0.999999}));
  }
  std::vector<int> widths;
  if (config.is_list("intermediate_size")) {
    TRY(widths, config.integers("intermediate_size", kDim));
    if (widths.size() != layers)
      return invalid("intermediate_size", "{} has {} entries, but the model has {} layers",
                     config.where("intermediate_size"), widths.size(), layers);
  } else {
    TRY(const int width, config.integer("intermediate_size", kDim));
    widths.assign(layers, width);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    spec.layers[i].mlp().hidden = widths[i];
    if (shares[i] > 0) spec.layers[i].mlp().tail = deviations(shares[i]);
  }
  return {};
}

// Sets AltUp's streams. The model's output is the mean of the streams, but the engine adds them up. A larger
// epsilon in the last norm makes both equal.
Result<> set_streams(ModelSpec& spec, const Config& config) {
  TRY(const int count, config.integer("altup_num_inputs", {2, kMaxStreams}));
  TRY(const int active, config.integer("altup_active_idx", {0, count - 1}));
  if (active != 0)
    return field_failure("altup_active_idx", ErrorCode::unsupported, "{} is {}, but only 0 is supported",
                         config.where("altup_active_idx"), active);
  TRY(const bool scales, config.boolean("altup_correct_scale"));
  spec.residual.streams = {.count = count, .norm = spec.final_norm, .scales_input = scales};
  if (!scales) spec.names.ignorable.emplace_back("*.altup.correct_output_scale");
  spec.final_norm.eps *= static_cast<float>(count * count);
  return {};
}

}  // namespace

static Result<ModelSpec> describe_gemma3n(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, kGemma3n));
  const int head_dim = spec.layers[0].attention().head_dim;
  TRY_VOID(set_windows(spec, config, [](int layer) { return (layer + 1) % 5 != 0; }));
  TRY(spec.max_positions, config.integer("max_position_embeddings", {1, 1 << 27}));
  TRY(spec.ropes[0], read_rope(config, kGemma3n, head_dim, spec.max_positions, "full_attention"));
  Dialect local = kGemma3n;
  local.theta = "rope_local_base_freq";
  TRY(RopeSpec slides, read_rope(config, local, head_dim, spec.max_positions, "sliding_attention"));
  spec.ropes.push_back(std::move(slides));
  set_norms(spec);
  TRY_VOID(set_widths(spec, config));
  TRY_VOID(set_sources(spec, config));
  TRY_VOID(set_layer_inputs(spec, config));
  TRY(const int rank, config.integer("laurel_rank", kDim));
  for (LayerSpec& layer : spec.layers) {
    layer.second_mixer = Laurel{.rank = rank, .norm = layer.pre_norm};
    layer.scales.mixed = std::numbers::sqrt2_v<float> / 2;
  }
  TRY_VOID(set_streams(spec, config));
  TRY_VOID(set_ends(spec, config));
  return spec;
}

Result<ModelSpec> describe_gemma4(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, kGemma4));
  TRY(const std::string both_ways, config.text("use_bidirectional_attention", ""));
  if (both_ways == "all")
    return field_failure("use_bidirectional_attention", ErrorCode::unsupported,
                         "{} is \"all\", but only causal attention is supported",
                         config.where("use_bidirectional_attention"));
  TRY_VOID(set_attention(spec, config));
  TRY_VOID(set_sources(spec, config));
  TRY_VOID(set_layer_inputs(spec, config));
  TRY(const bool wide, config.boolean("use_double_wide_mlp", false));
  for (LayerSpec& layer : spec.layers) {
    layer.scales.stored = true;
    if (wide && layer.attention().source >= 0) layer.mlp().hidden *= 2;
  }
  TRY_VOID(set_ends(spec, config));
  TRY_VOID(set_experts(spec, config));
  return spec;
}

// EmbeddingGemma 2 (2026): Gemma 4 with bidirectional attention. The vectors of layers have no table. Images
// and sounds are not supported.
static Result<ModelSpec> describe_embedding_gemma2(const Config& config) {
  TRY(ModelSpec spec, describe_gemma4(config));
  for (LayerSpec& layer : spec.layers) {
    AttentionMask& mask = layer.attention().mask;
    mask.causal = false;
    if (mask.window > 0) ++mask.window;  // sliding_window does not count the query
  }
  spec = as_embedder(std::move(spec));
  HeadLayer projection{.name = "language_model.embedding_projection", .bias = false};
  TRY(projection.outputs, config.integer("embedding_dim", kDim));
  spec.head->layers = {std::move(projection)};
  Names& names = spec.names;
  names.prefixes = {"language_model."};
  for (const char* other : {"vision_tower.*", "audio_tower.*", "embed_vision.*", "embed_audio.*"})
    names.ignorable.emplace_back(other);
  LayerInputs::Names& inputs = names.of<LayerInputs>();
  for (std::string* name : {&inputs.projection, &inputs.norm}) name->insert(0, "ple.");
  for (std::string* name : {&inputs.gate, &inputs.out, &inputs.post_norm}) name->insert(0, "ple_block.");
  return spec;
}

std::span<const Family> gemma4_families() {
  static constexpr Family kRows[] = {
      {"EmbeddingGemma2Model", describe_embedding_gemma2, true},
      {"Gemma3nForCausalLM", describe_gemma3n},
      {"Gemma3nForConditionalGeneration", describe_gemma3n, true},
      {"Gemma4ForCausalLM", describe_gemma4},
      {"Gemma4UnifiedForCausalLM", describe_gemma4},
      {"Gemma4UnifiedForConditionalGeneration", describe_gemma4, true},
  };
  return kRows;
}

}  // namespace octavo
