// Dory (NVIDIA, 2026): a residual of length 1 (SphereStep), and layers in the middle that run several times.
// A layer has either attention or an MLP. Queries, keys, and the inputs of output projections have length 1,
// which RMS norms replace: their larger outputs are scaled back by the score scale and by SphereStep.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr float kUnitEps = 1e-6F;  // SphereStep::eps
constexpr Config::Range kDoryLayers{0, 1024};

Result<std::vector<std::string>> read_kinds(const Config& config, std::size_t layers) {
  constexpr std::string_view kField = "layer_types";
  TRY(std::vector<std::string> kinds, config.texts(kField));
  for (std::size_t i = 0; !config.has(kField) && i < layers; ++i)
    kinds.emplace_back(i % 2 == 1 ? "mlp" : i % 8 == 6 ? "full_attention" : "sliding_attention");
  if (kinds.size() != layers)
    return invalid(kField, "{} has {} entries, but the model has {} layers", config.where(kField),
                   kinds.size(), layers);
  for (const std::string& kind : kinds)
    if (kind != "mlp" && kind != "full_attention" && kind != "sliding_attention")
      return field_failure(
          kField, ErrorCode::unsupported,
          "{} has \"{}\", which is not supported: must be full_attention, sliding_attention or mlp",
          config.where(kField), kind);
  return kinds;
}

Result<Attention> read_attention(const Config& config, Attention a, double range) {
  const auto head = static_cast<float>(a.head_dim);
  a.norms = {.qk_kind = QkNorm::shared,
             .qk = {.kind = NormKind::rms, .eps = kUnitEps / head},
             .qk_after_rope = true,
             .out = {.kind = NormKind::rms, .eps = kUnitEps / static_cast<float>(a.q_dim()), .stored = false},
             .square = static_cast<float>(std::sqrt(head) / range)};
  a.scores.scale = 1 / (head * std::sqrt(head));
  a.output_gate = true;
  constexpr std::string_view kGate = "attention_output_gate_logit_scale_init";
  TRY(const int dim, config.integer("hidden_size", kDim));
  TRY(const double gate, config.number(kGate, {1e-9, 1e9}, std::sqrt(static_cast<double>(dim))));
  a.gate_square = static_cast<float>(std::sqrt(gate) / range);
  return a;
}

// Sets the kind, window and RoPE of each layer.
Result<> set_kinds(ModelSpec& spec, const Config& config, const Attention& attention, Mlp mlp) {
  TRY(const std::vector<std::string> kinds, read_kinds(config, spec.layers.size()));
  const float hidden = static_cast<float>(mlp.hidden);
  mlp.hidden_norm = {.kind = NormKind::rms, .eps = kUnitEps / hidden, .stored = false};
  mlp.row_scale = std::sqrt(static_cast<float>(spec.dim));
  spec.ropes.clear();
  std::vector<std::string> rotated;  // kinds of layers with a rope, in the order of spec.ropes
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    if (kinds[i] == "mlp") {
      layer.mixer = {};
      layer.feed_forward = mlp;
      layer.sphere.out_eps = kUnitEps * hidden;
      continue;
    }
    Attention a = attention;
    if (kinds[i] == "sliding_attention") {
      TRY(a.mask.window, config.integer("sliding_window", {1, 1 << 27}));
    }
    if (std::ranges::find(rotated, kinds[i]) == rotated.end()) {
      rotated.push_back(kinds[i]);
      TRY(spec.ropes.emplace_back(), read_rope(config, {}, a.head_dim, spec.max_positions, kinds[i]));
    }
    a.rope = static_cast<int>(std::ranges::find(rotated, kinds[i]) - rotated.begin());
    layer.mixer = a;
    layer.feed_forward = {};
    layer.sphere.out_eps = kUnitEps * static_cast<float>(a.q_dim());
  }
  return {};
}

// Repeats the layers between the first n_input_layers and the last n_output_layers. Each run has separate
// keys and values. The norm after a run is left out, because its input already has length 1.
Result<> repeat_layers(ModelSpec& spec, const Config& config) {
  const int layers = static_cast<int>(spec.layers.size());
  TRY(const int before, config.integer("n_input_layers", kDoryLayers));
  TRY(const int after, config.integer("n_output_layers", kDoryLayers));
  TRY(const int count, config.integer("n_recurrent_layers", kDoryLayers, layers - before - after));
  TRY(const int runs, config.integer("n_recurrent_loops", {1, 64}));
  TRY_VOID(support(config, "recurrent_kv_cache_mode", "per_loop"));
  if (before + count + after != layers || count == 0)
    return invalid("n_recurrent_layers",
                   "{} is {}, but must be above 0 and, with n_input_layers {} and n_output_layers {}, add up "
                   "to num_hidden_layers {}",
                   config.where("n_recurrent_layers"), count, before, after, layers);
  const std::vector<LayerSpec> stored = std::exchange(spec.layers, {});
  const auto append = [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      spec.layers.push_back(stored[static_cast<std::size_t>(i)]);
      spec.layers.back().number = i;
    }
  };
  append(0, before);
  for (int run = 0; run < runs; ++run) {
    const std::size_t first = spec.layers.size();
    append(before, before + count);
    spec.layers[first].loop = LoopInput{.first = run == 0, .eps = kUnitEps};
  }
  append(before + count, layers);
  return {};
}

void name_dory_tensors(Names& names) {
  names.prefixes = {"backbone."};
  names.embedding.tokens = "embeddings";
  names.logits_scale = "lm_head.logit_scale";
  names.attention.qkv = {"mixer.q_proj", "mixer.k_proj", "mixer.v_proj", "mixer.g_proj"};
  names.attention.q_norm = "mixer.sqk";
  names.attention.gate_scale = "mixer.s_gate";
  names.attention.out = "mixer.o_proj";
  names.mlp.up = {"mixer.gate_proj", "mixer.up_proj"};
  names.mlp.up_scales = {"mixer.suv_gate", "mixer.suv_up"};
  names.mlp.down = "mixer.down_proj";
}

}  // namespace

static Result<ModelSpec> describe_dory(const Config& config) {
  for (const char* field : {"attention_bias", "mlp_bias", "tie_word_embeddings"})
    TRY_VOID(refuse(config, field, true));
  TRY_VOID(support(config, "hidden_act", "silu"));
  TRY(ModelSpec spec, describe_dense(config, {.eps = "", .rotary = false}));
  TRY(const double range, config.number("initializer_range", {1e-9, 1e3}));
  TRY(const double alpha, config.number("ngpt_alpha_init", {0, 1e3}));
  TRY(const Attention attention, read_attention(config, spec.layers[0].attention(), range));
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::on_sphere;
    layer.sphere = {.scale = static_cast<float>(alpha / range), .eps = kUnitEps};
  }
  TRY_VOID(set_kinds(spec, config, attention, spec.layers[0].mlp()));
  TRY_VOID(repeat_layers(spec, config));
  spec.final_norm = {};
  spec.logits.scale = static_cast<float>(1 / range);
  name_dory_tensors(spec.names);
  return spec;
}

std::span<const Family> dory_families() {
  static constexpr Family kRows[] = {{"DoryForCausalLM", describe_dory}};
  return kRows;
}

}  // namespace octavo
