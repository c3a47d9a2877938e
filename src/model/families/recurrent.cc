#include "model/families/recurrent.h"

#include <fmt/ranges.h>
#include <algorithm>

#include "model/families/common.h"

namespace octavo {
namespace {

constexpr Config::RealRange kSteps{0, 1e308};

// Numbers above the range of float become infinity.
float finite_or_infinite(double number) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return number > kMost ? std::numeric_limits<float>::infinity() : static_cast<float>(number);
}

}  // namespace

Result<Mamba2> read_mamba2(const Config& config, const Mamba2Fields& fields,
                           std::optional<std::int64_t> inner, const NormSpec& norm) {
  Mamba2 m{.norm = norm};
  TRY(m.heads, config.integer(fields.heads, kHeads));
  TRY(m.groups, config.integer(fields.groups, kHeads));
  TRY(m.state_dim, config.integer(fields.state_dim, {1, kMaxStateDim}));
  TRY(m.conv_width, config.integer(fields.conv_width, {2, kMaxConvWidth}));
  TRY(m.conv_bias, config.boolean(fields.conv_bias));
  TRY(m.bias, config.boolean(fields.bias));
  if (config.has(fields.head_dim) && !config.text(fields.head_dim)) {
    TRY(m.head_dim, config.integer(fields.head_dim, {1, kMaxStateDim}));
  } else if (inner) {
    m.head_dim = static_cast<int>(*inner / m.heads);
  }
  if (m.head_dim < 1 || m.head_dim > kMaxStateDim || (inner && m.inner() != *inner))
    return invalid(fields.heads,
                   "{} {}: {} heads of {} elements must have {} elements together, and a head at most {}",
                   config.where(fields.heads), m.heads, m.heads, m.head_dim, inner.value_or(0), kMaxStateDim);
  if (m.heads % m.groups != 0)
    return invalid(fields.groups, "{} {} must divide {} {}", config.where(fields.groups), m.groups,
                   fields.heads, m.heads);
  if (norm.kind != NormKind::none && m.inner() / m.groups > kMaxGateDim)
    return field_failure(fields.groups, ErrorCode::unsupported,
                         "{} {}: a group has {} elements, but only groups of at most {} can be normalised",
                         config.where(fields.groups), m.groups, m.inner() / m.groups, kMaxGateDim);
  if (config.has("time_step_limit")) {
    TRY(const std::vector<double> limits, config.numbers("time_step_limit", 2, kSteps));
    m.least_step = finite_or_infinite(limits[0]);
    m.most_step = finite_or_infinite(limits[1]);
  }
  return m;
}

Result<std::int64_t> read_mamba_inner(const Config& config, int dim) {
  TRY(const int expand, config.integer("mamba_expand", {1, 64}));
  return std::int64_t{expand} * dim;
}

Result<std::vector<std::string>> read_layer_kinds(const Config& config, std::string_view field,
                                                  std::span<const std::string_view> kinds,
                                                  std::optional<std::size_t> layers) {
  TRY(std::vector<std::string> list, config.texts(field));
  if (layers && !list.empty() && list.size() != *layers)
    return invalid(field, "{} has {} entries, but the model has {} layers", config.where(field), list.size(),
                   *layers);
  for (std::string& kind : list) {
    if (kind == "mamba") kind = "linear_attention";
    if (kind == "attention") kind = "full_attention";
    if (std::ranges::count(kinds, kind) == 0)
      return field_failure(field, ErrorCode::unsupported,
                           "{} has \"{}\", which is not supported: must be one of {}", config.where(field),
                           kind, fmt::join(kinds, ", "));
  }
  return list;
}

Result<ModelSpec> describe_attention_free(
    const Config& config, const std::function<Result<Mixer>(int dim, const NormSpec&)>& mixer) {
  ModelSpec spec;
  TRY(spec.dim, config.integer("hidden_size", kDim));
  TRY(spec.vocab, config.integer("vocab_size", {1, kMaxVocab}));
  TRY(spec.logits.tied, config.boolean("tie_word_embeddings", false));
  TRY(const int layers, config.integer("num_hidden_layers", {1, 1024}));
  TRY(const double eps, config.number("layer_norm_epsilon", {0, 1}));
  TRY(const std::string activation, config.text("hidden_act"));
  if (activation != "silu")
    return field_failure("hidden_act", ErrorCode::unsupported, "{} must be silu for this model",
                         config.where("hidden_act"));
  spec.max_positions = 1 << 20;  // a limit is required, but no part of the network depends on the length
  spec.final_norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)};
  LayerSpec layer{.pre_norm = spec.final_norm};
  TRY(layer.mixer, mixer(spec.dim, spec.final_norm));
  spec.layers.assign(static_cast<std::size_t>(layers), layer);
  spec.names.prefixes = {"backbone.", "model."};
  spec.names.embedding.tokens = "embeddings";
  spec.names.final_norm = "norm_f";
  spec.names.attention.norm = "norm";
  spec.names.of<Mamba>().prefix = "mixer.";
  return spec;
}

Result<DeltaNet> read_delta_net(const Config& config, float eps, const DeltaNet& usual) {
  const auto or_usual = [](int number) { return number > 0 ? std::optional<int>(number) : std::nullopt; };
  DeltaNet net{.norm = {.kind = NormKind::rms, .eps = eps}};
  TRY(net.key_heads, config.integer("linear_num_key_heads", kHeads, or_usual(usual.key_heads)));
  TRY(net.value_heads, config.integer("linear_num_value_heads", kHeads, or_usual(usual.value_heads)));
  TRY(net.key_dim, config.integer("linear_key_head_dim", {1, kMaxStateDim}, or_usual(usual.key_dim)));
  TRY(net.value_dim, config.integer("linear_value_head_dim", {1, kMaxStateDim}, or_usual(usual.value_dim)));
  TRY(net.conv_width, config.integer("linear_conv_kernel_dim", {2, kMaxConvWidth}));
  if (net.value_heads % net.key_heads != 0)
    return invalid("linear_num_value_heads", "{} {} must be a multiple of linear_num_key_heads {}",
                   config.where("linear_num_value_heads"), net.value_heads, net.key_heads);
  return net;
}

Result<> set_delta_nets(ModelSpec& spec, const Config& config, const DeltaNet& net) {
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  TRY(const int interval, config.integer("full_attention_interval", {1, 1024}, 4));
  if (!types.empty() && types.size() != spec.layers.size())
    return invalid("layer_types", "{} has {} entries, but the model has {} layers",
                   config.where("layer_types"), types.size(), spec.layers.size());
  for (const std::string& type : types)
    if (type != "linear_attention" && type != "full_attention")
      return field_failure(
          "layer_types", ErrorCode::unsupported,
          "{} has \"{}\", which is not supported: must be full_attention or linear_attention",
          config.where("layer_types"), type);
  std::size_t full = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const bool linear =
        types.empty() ? (i + 1) % static_cast<std::size_t>(interval) != 0 : types[i] == "linear_attention";
    full += !linear;
    if (linear) spec.layers[i].mixer = net;
  }
  if (full == 0)
    return field_failure("layer_types", ErrorCode::unsupported,
                         "{}: at least one layer must have full_attention", config.where("layer_types"));
  return {};
}

}  // namespace octavo
