#include "model/families/common.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "kernels/sampling_math.h"

namespace octavo {
namespace {

constexpr Config::Range kLayers{1, 1024};
constexpr Config::Range kHeadDim{2, 4096};
constexpr Config::Range kExperts{1, 1024};
constexpr Config::Range kVocab{1, kMaxVocab};
constexpr Config::Range kPositions{1, 1 << 27};
constexpr Config::RealRange kEps{0, 1};
constexpr Config::RealRange kTheta{1, 1e12};
constexpr Config::RealRange kFactor{1e-3, 1e6};

Result<Activation> read_activation(const Config& config, const Dialect& dialect) {
  if (dialect.activation.empty()) return Activation::silu;
  TRY(const std::string name, config.text(dialect.activation));
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  if (name == "relu2") return Activation::relu_squared;
  return field_failure(
      dialect.activation, ErrorCode::unsupported,
      "{} is \"{}\", which is not supported: must be silu, gelu, gelu_new, gelu_pytorch_tanh, relu or relu2",
      config.where(dialect.activation), name);
}

Result<Attention> read_heads(const Config& config, const Dialect& dialect, int dim) {
  Attention a;
  TRY(a.q_heads, config.integer(dialect.heads, kHeads));
  TRY(a.kv_heads, config.integer(dialect.kv_heads, kHeads, a.q_heads));
  if (a.q_heads % a.kv_heads != 0) {
    return invalid("num_key_value_heads", "{} {} must be a multiple of num_key_value_heads {}",
                   config.where(dialect.heads), a.q_heads, a.kv_heads);
  }
  const bool own_size = !dialect.head_dim.empty() && config.has(dialect.head_dim);
  if (!own_size && dim % a.q_heads != 0) {
    return invalid(dialect.heads, "{} {} must divide {} {}", config.where(dialect.heads), a.q_heads,
                   dialect.dim, dim);
  }
  a.head_dim = dim / a.q_heads;
  if (own_size) {
    TRY(a.head_dim, config.integer(dialect.head_dim, kHeadDim));
  }
  a.scores.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.head_dim)));
  return a;
}

// Yarn's factor of cos and sin: Peng et al., 2023, equation 15, with DeepSeek's extension.
Result<double> yarn_attention_factor(const Config& rope, double factor) {
  const auto scale = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
  TRY(const double m, rope.number("mscale", {0, 100}, 0.0));
  TRY(const double m_all, rope.number("mscale_all_dim", {0, 100}, 0.0));
  return rope.number("attention_factor", kFactor, m != 0 && m_all != 0 ? scale(m) / scale(m_all) : scale(1));
}

Result<RopeScaling> read_scaling(const Config& config, const Dialect& dialect, const Config& rope,
                                 int rotary_dim, int positions) {
  TRY(const std::string older, rope.text("type", "default"));
  TRY(std::string kind, rope.text("rope_type", older));
  if (kind == "su" || (kind == "yarn" && dialect.yarn_is_longrope)) kind = "longrope";
  if (kind == "deepseek_yarn") kind = "yarn";
  RopeScaling s;
  s.original_positions = positions;
  if (kind == "default" || kind == "mrope") return s;  // mrope has no scaling; set_axes() reads it
  if (kind == "linear" || kind == "dynamic" || kind == "ntk") {
    s.kind = kind == "linear"    ? RopeScalingKind::linear
             : kind == "dynamic" ? RopeScalingKind::dynamic
                                 : RopeScalingKind::ntk;
    TRY(s.factor, rope.number("factor", kFactor));
    return s;
  }
  TRY(s.original_positions, rope.integer("original_max_position_embeddings", kPositions, positions));
  TRY(s.original_positions,
      config.integer("original_max_position_embeddings", kPositions, s.original_positions));
  const double stretch = static_cast<double>(positions) / s.original_positions;
  if (kind == "llama3") {
    s.kind = RopeScalingKind::llama3;
    TRY(s.factor, rope.number("factor", kFactor));
    TRY(s.low_freq_factor, rope.number("low_freq_factor", kFactor));
    TRY(s.high_freq_factor, rope.number("high_freq_factor", kFactor));
    if (s.low_freq_factor > s.high_freq_factor) {
      return invalid("low_freq_factor", "{} {} must be at most high_freq_factor {}",
                     rope.where("low_freq_factor"), s.low_freq_factor, s.high_freq_factor);
    }
  } else if (kind == "yarn") {
    s.kind = RopeScalingKind::yarn;
    TRY(s.factor, rope.number("factor", kFactor));
    TRY(s.beta_fast, rope.number("beta_fast", kFactor, s.beta_fast));
    TRY(s.beta_slow, rope.number("beta_slow", kFactor, s.beta_slow));
    TRY(s.truncate, rope.boolean("truncate", true));
    TRY(s.attention_factor, yarn_attention_factor(rope, s.factor));
  } else if (kind == "longrope") {
    s.kind = RopeScalingKind::longrope;
    TRY(s.factor, rope.number("factor", kFactor, stretch));
    const auto pairs = static_cast<std::size_t>(rotary_dim / 2);
    TRY(s.short_factors, rope.numbers("short_factor", pairs, kFactor));
    TRY(s.long_factors, rope.numbers("long_factor", pairs, kFactor));
    const double suggested =
        s.factor <= 1 ? 1 : std::sqrt(1 + std::log(s.factor) / std::log(std::max(s.original_positions, 2)));
    TRY(s.attention_factor, rope.number("attention_factor", kFactor, suggested));
  } else if (kind == "proportional") {
    s.kind = RopeScalingKind::proportional;
    TRY(s.factor, rope.number("factor", kFactor, 1.0));
    TRY(s.share, rope.number("partial_rotary_factor", {0, 1}, 1.0));
  } else {
    return field_failure("rope_type", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be default, linear, dynamic, llama3, "
                         "yarn, longrope, ntk or proportional",
                         rope.where("rope_type"), kind);
  }
  return s;
}

// Length of the longest sequence with this scaling. For llama3 and longrope, `positions` already includes the
// scaling.
int scaled_positions(const RopeScaling& s, int positions) {
  const bool scale = s.kind == RopeScalingKind::linear || s.kind == RopeScalingKind::dynamic ||
                     s.kind == RopeScalingKind::yarn;
  if (!scale) return positions;
  return static_cast<int>(
      std::clamp(s.original_positions * s.factor, 1.0, static_cast<double>(kPositions.most)));
}

}  // namespace

Result<RopeSpec> read_rope(const Config& config, const Dialect& dialect, int head_dim, int positions,
                           std::string_view layer_type) {
  TRY(std::optional<Config> rope, config.object("rope_scaling"));
  if (!rope) {
    TRY(rope, config.object("rope_parameters"));
  }
  if (rope && rope->has(layer_type)) {
    TRY(rope, rope->object(layer_type));
  } else if (layer_type == "sliding_attention") {
    rope.reset();
  }
  RopeSpec spec;
  TRY(spec.theta, config.number(dialect.theta, kTheta, spec.theta));
  if (rope) {
    TRY(spec.theta, rope->number("rope_theta", kTheta, spec.theta));
  }
  const bool partial = !dialect.rotary_fraction.empty();
  // Only the conversion from GGUF sets rotary_share, for any family.
  const std::string_view field = partial ? dialect.rotary_fraction : "rotary_share";
  TRY(double fraction, config.number(field, {0, 1}, 1.0));
  if (rope && partial) {
    TRY(fraction, rope->number("partial_rotary_factor", {0, 1}, fraction));
  }
  spec.rotary_dim = static_cast<int>(head_dim * fraction);
  if (spec.rotary_dim < 2 || spec.rotary_dim % 2 != 0) {
    const std::string_view named = config.has(field) ? field : "head_dim";
    return invalid(named,
                   "{}: RoPE rotates {} of {} elements of a head, but the number must be even and at least 2",
                   config.where(named), spec.rotary_dim, head_dim);
  }
  if (rope) {
    TRY(spec.scaling, read_scaling(config, dialect, *rope, spec.rotary_dim, positions));
  }
  return spec;
}

Result<ModelSpec> describe_dense(const Config& config, const Dialect& dialect) {
  ModelSpec spec;
  TRY(spec.dim, config.integer(dialect.dim, kDim));
  TRY(spec.vocab, config.integer("vocab_size", kVocab));
  TRY(spec.max_positions, config.integer(dialect.positions, kPositions));
  TRY(spec.logits.tied, config.boolean("tie_word_embeddings", false));
  TRY(const int layers, config.integer(dialect.layers, kLayers));
  double eps = dialect.norm.eps;
  if (!dialect.eps.empty()) {
    TRY(eps, config.number(dialect.eps, kEps));
  }

  LayerSpec layer;
  layer.pre_norm = dialect.norm;
  layer.pre_norm.eps = static_cast<float>(eps);
  TRY(layer.mixer, read_heads(config, dialect, spec.dim));
  Mlp mlp;
  const auto derived =
      dialect.hidden_to_dim > 0 ? std::optional(dialect.hidden_to_dim * spec.dim) : std::nullopt;
  if (!dialect.hidden.empty() || derived) {
    TRY(mlp.hidden, config.integer(dialect.hidden, kDim, derived));
  }
  TRY(mlp.activation, read_activation(config, dialect));
  layer.feed_forward = mlp;
  if (dialect.rotary) {
    TRY(RopeSpec rope, read_rope(config, dialect, layer.attention().head_dim, spec.max_positions));
    spec.max_positions = scaled_positions(rope.scaling, spec.max_positions);
    spec.ropes.push_back(std::move(rope));
    layer.attention().rope = 0;
  }
  spec.layers.assign(static_cast<std::size_t>(layers), layer);
  spec.final_norm = layer.pre_norm;
  return spec;
}

Result<SourceInput> read_source(const Config& config, const ModelSpec& encoder) {
  SourceInput source{.rows = encoder.max_positions, .begin = {}};
  for (const std::string_view field : {"decoder_start_token_id", "forced_bos_token_id"}) {
    if (field == "forced_bos_token_id" && !config.has(field)) continue;
    TRY(source.begin.emplace_back(), config.integer(field, {0, encoder.vocab - 1}));
  }
  return source;
}

Result<> set_window(ModelSpec& spec, const Config& config) {
  if (!config.has("sliding_window")) return {};
  TRY(const int window, config.integer("sliding_window", kPositions));
  for (LayerSpec& layer : spec.layers) layer.attention().mask.window = window;
  return {};
}

Result<> set_window_of_all(ModelSpec& spec, const Config& config) {
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  for (const std::string& type : types)
    if (config.has("sliding_window") && type != "sliding_attention")
      return field_failure("layer_types", ErrorCode::unsupported,
                           "{} has \"{}\", but with sliding_window all layers of {} have sliding_attention: "
                           "remove one of the two fields",
                           config.where("layer_types"), type,
                           config.text("model_type", "this model").value_or(""));
  return set_window(spec, config);
}

Result<Experts> read_experts(const Config& config, const Mlp& like, std::string_view hidden) {
  Experts experts{.count = 0, .router = {}, .expert = like};
  TRY(experts.count,
      config.integer(config.has("num_local_experts") ? "num_local_experts" : "num_experts", kExperts));
  TRY(experts.router.chosen, config.integer("num_experts_per_tok", {1, experts.count}));
  TRY(experts.expert.hidden, config.integer(hidden, kDim));
  return experts;
}

Result<std::vector<bool>> sparse_layers(const Config& config, std::size_t layers) {
  TRY(const int dense, config.integer("first_k_dense_replace", {0, 1024}, 0));
  constexpr std::string_view kEach = "moe_layer_freq";
  const bool each = config.is_list(kEach);
  TRY(const std::vector<int> marks, each ? config.integers(kEach, {0, 1}) : std::vector<int>());
  TRY(const int step, each ? 1 : config.integer(kEach, {1, 1024}, 1));
  TRY(const std::vector<std::string> types, config.texts("mlp_layer_types"));
  if (each && marks.size() != layers)
    return invalid(kEach, "{} has {} entries, but the model has {} layers", config.where(kEach), marks.size(),
                   layers);
  if (!types.empty() && types.size() != layers)
    return invalid("mlp_layer_types", "{} has {} entries, but the model has {} layers",
                   config.where("mlp_layer_types"), types.size(), layers);
  for (const std::string& type : types)
    if (type != "dense" && type != "sparse")
      return field_failure("mlp_layer_types", ErrorCode::unsupported,
                           "{} has \"{}\", which is not supported: must be dense or sparse",
                           config.where("mlp_layer_types"), type);
  std::vector<bool> sparse;
  for (int i = 0; std::cmp_less(i, layers); ++i)
    sparse.push_back(!types.empty() ? types[static_cast<std::size_t>(i)] == "sparse"
                     : each         ? marks[static_cast<std::size_t>(i)] == 1
                                    : i >= dense && i % step == 0);
  return sparse;
}

Result<Head> read_classifier(const Config& config) {
  Head head{.pool = Pool::first};
  TRY(head.labels, config.numbered_texts("id2label"));
  if (head.labels.empty()) head.labels = {"LABEL_0", "LABEL_1"};
  TRY(std::string function, config.text("sbert_ce_default_activation_function", ""));
  TRY(const std::optional<Config> nested, config.object("sentence_transformers"));
  if (nested) {
    TRY(function, nested->text("activation_fn", function));
  }
  TRY(const std::string problem, config.text("problem_type", ""));
  const bool one = head.labels.size() == 1;
  if (function.ends_with("Identity") || (function.empty() && problem == "regression")) {
    head.label_activation = LabelActivation::none;
  } else if (function.ends_with("Sigmoid") ||
             (function.empty() && (one || problem == "multi_label_classification"))) {
    head.label_activation = LabelActivation::sigmoid;
  } else if (function.empty()) {
    head.label_activation = LabelActivation::softmax;
  } else {
    return field_failure(
        "activation_fn", ErrorCode::unsupported,
        "config.json: activation_fn is \"{}\", which is not supported: must be Identity or Sigmoid",
        function);
  }
  return head;
}

void score_each_token(ModelSpec& spec) {
  const Head& of_texts = *spec.head;
  spec.token_heads.push_back({.each_token = true,
                              .layers = {of_texts.layers.back()},
                              .labels = of_texts.labels,
                              .label_activation = of_texts.label_activation});
}

Result<> set_windows(ModelSpec& spec, const Config& config, const std::function<bool(int layer)>& sliding) {
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  const bool any_slides = std::ranges::count(types, "sliding_attention") > 0;
  if (!config.has("sliding_window") && !any_slides) return {};
  TRY(const int window, config.integer("sliding_window", kPositions));
  if (!types.empty() && types.size() != spec.layers.size()) {
    return invalid("layer_types", "{} has {} entries, but the model has {} layers",
                   config.where("layer_types"), types.size(), spec.layers.size());
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (!types.empty() && types[i] != "sliding_attention" && types[i] != "full_attention") {
      return field_failure(
          "layer_types", ErrorCode::unsupported,
          "{} has \"{}\", which is not supported: must be full_attention or sliding_attention",
          config.where("layer_types"), types[i]);
    }
    const bool slides = types.empty() ? sliding(static_cast<int>(i)) : types[i] == "sliding_attention";
    spec.layers[i].attention().mask.window = slides ? window : 0;
  }
  return {};
}

Result<> leave_out_gates(ModelSpec& spec, const Config& config, bool biases) {
  TRY(const bool attention_bias, config.boolean("attention_bias", biases));
  TRY(const bool mlp_bias, config.boolean("mlp_bias", biases));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = attention_bias, .out = attention_bias};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  spec.names.mlp.up = {"mlp.up_proj"};
  return {};
}

Result<Temperature> read_temperature(const Config& config) {
  Temperature temperature;
  TRY(const std::optional<Config> rope, config.object("rope_parameters"));
  if (!rope || !rope->has("llama_4_scaling_beta")) return temperature;
  TRY(temperature.beta, rope->number("llama_4_scaling_beta", {0, 100}));
  TRY(temperature.length, rope->integer("original_max_position_embeddings", kPositions));
  return temperature;
}

Result<> set_rope_layers(ModelSpec& spec, const Config& config) {
  TRY(const std::vector<int> listed, config.integers("no_rope_layers", {0, 1}));
  TRY(const int interval, config.integer("no_rope_layer_interval", {1, 1024}, 4));
  if (!listed.empty() && listed.size() < spec.layers.size())
    return invalid("no_rope_layers", "{} has {} entries, but the model has {} layers",
                   config.where("no_rope_layers"), listed.size(), spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const bool rotates = listed.empty() ? (i + 1) % static_cast<std::size_t>(interval) != 0 : listed[i] != 0;
    if (!rotates) spec.layers[i].attention().rope = -1;
  }
  return {};
}

Result<> set_rotary_dim(ModelSpec& spec, const Config& config, int head_dim) {
  if (!config.has("rotary_dim")) return {};
  RopeSpec& rope = spec.ropes[0];
  TRY(const int rotary_dim, config.integer("rotary_dim", {2, head_dim}));
  if (rotary_dim % 2 != 0)
    return invalid("rotary_dim", "{} is {}, but must be even", config.where("rotary_dim"), rotary_dim);
  if (rope.scaling.kind == RopeScalingKind::longrope && rotary_dim != rope.rotary_dim)
    return invalid(
        "rotary_dim",
        "{} is {}, but the factors of longrope need {}, which is the number from partial_rotary_factor",
        config.where("rotary_dim"), rotary_dim, rope.rotary_dim);
  rope.rotary_dim = rotary_dim;
  return {};
}

Result<> set_ropes_by_kind(ModelSpec& spec, const Config& config, const Dialect& dialect) {
  TRY(const int positions, config.integer("max_position_embeddings", kPositions));
  const int head_dim = spec.layers[0].attention().head_dim;
  TRY(spec.ropes[0], read_rope(config, dialect, head_dim, positions, "full_attention"));
  TRY(RopeSpec local, read_rope(config, dialect, head_dim, positions, "sliding_attention"));
  spec.ropes.push_back(std::move(local));
  for (LayerSpec& layer : spec.layers) layer.attention().rope = layer.attention().mask.window > 0 ? 1 : 0;
  return {};
}

std::vector<float> alibi_slopes(int heads, double most) {
  const auto whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  std::vector<float> slopes;
  for (int i = 1; i <= whole; ++i) slopes.push_back(static_cast<float>(std::exp2(-most * i / whole)));
  for (int i = 1; std::ssize(slopes) < heads; i += 2)
    slopes.push_back(static_cast<float>(std::exp2(-most * i / (2 * whole))));
  return slopes;
}

Result<> refuse(const Config& config, std::string_view field, bool unsupported) {
  TRY(const bool value, config.boolean(field, !unsupported));
  if (value != unsupported) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is {}, which is not supported", config.where(field),
                       value);
}

Result<> refuse_any(const Config& config, std::string_view field) {
  if (!config.has(field)) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is not supported", config.where(field));
}

Result<> support(const Config& config, std::string_view field, std::string_view only) {
  TRY(const std::string value, config.text(field, std::string(only)));
  if (value == only) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is \"{}\", which is not supported here: must be {}",
                       config.where(field), value, only);
}

Result<float> multiplier(const Config& config, std::string_view field) {
  TRY(const double value, config.number(field, {1e-9, 1e9}));
  return static_cast<float>(value);
}

Result<float> read_clip(const Config& config) {
  TRY(const double value, config.number("clip_qkv", {1e-9, 1e9}, 0.0));
  return static_cast<float>(value);
}

Result<> set_shared_width(ModelSpec& spec, const Config& config) {
  if (!config.has("moe_shared_expert_intermediate_size")) return {};
  TRY(const int width, config.integer("moe_shared_expert_intermediate_size", {1, 1 << 20}));
  TRY(const int shared, config.integer("n_shared_experts", {0, kMaxExperts}, 0));
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward); experts && experts->shared)
      experts->shared->hidden = width * shared;
  return {};
}

Result<float> soft_cap(const Config& config, std::string_view field) {
  TRY(const double value, config.number(field, {0, 1e9}, 0.0));
  return static_cast<float>(value);
}

}  // namespace octavo
