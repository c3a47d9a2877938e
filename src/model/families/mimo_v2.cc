// MiMo-V2-Flash (Xiaomi, 2025). Most layers have sliding windows, attention sinks and more KV heads. Values
// are narrower than keys. The experts are DeepSeek-V3's without shared experts.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/quantization_config.h"

namespace octavo {
namespace {

// Returns the layers with sliding windows, from a list of types or of numbers. By default, all layers except
// the first and every sixth layer have windows.
Result<std::vector<bool>> window_layers(const Config& config, std::size_t layers) {
  TRY(const std::vector<std::string> kinds, config.texts("layer_types"));
  TRY(const std::vector<int> numbers, config.integers("hybrid_layer_pattern", {0, 1}));
  const std::string_view field = kinds.empty() ? "hybrid_layer_pattern" : "layer_types";
  if (const std::size_t listed = kinds.empty() ? numbers.size() : kinds.size();
      listed > 0 && listed != layers)
    return invalid(field, "{} has {} entries, but the model has {} layers", config.where(field), listed,
                   layers);
  std::vector<bool> windows;
  for (std::size_t i = 0; i < layers; ++i)
    windows.push_back(!kinds.empty()     ? kinds[i] == "sliding_attention"
                      : !numbers.empty() ? numbers[i] == 1
                                         : i > 0 && (i + 1) % 6 != 0);
  return windows;
}

}  // namespace

static Result<ModelSpec> describe_mimo_v2_flash(const Config& file) {
  const Config config = file.with_names({{"rms_norm_eps", "layernorm_epsilon"}});
  const Dialect dialect{.rotary_fraction = "partial_rotary_factor"};
  TRY(ModelSpec spec, describe_dense(config, dialect));
  Attention full = spec.layers[0].attention();
  TRY(full.biases.qkv, config.boolean("attention_bias", false));
  TRY(full.value_dim, config.integer("v_head_dim", {1, full.head_dim}));
  if (full.value_dim == full.head_dim) full.value_dim = 0;
  Attention local = full;
  TRY(local.kv_heads, config.integer("swa_num_key_value_heads", {1, full.q_heads}, 2 * full.kv_heads));
  if (full.q_heads % local.kv_heads != 0)
    return invalid("swa_num_key_value_heads", "{} {} must divide num_attention_heads {}",
                   config.where("swa_num_key_value_heads"), local.kv_heads, full.q_heads);
  TRY(local.mask.window, config.integer("sliding_window", {1, 1 << 27}));
  if (config.has("sliding_window_size")) {  // a query sees sliding_window_size tokens before it
    TRY(local.mask.window, config.integer("sliding_window_size", {1, (1 << 27) - 1}));
    ++local.mask.window;
  }
  TRY(local.scores.sinks, config.boolean("add_swa_attention_sink_bias", true));
  TRY(const std::vector<bool> windows, window_layers(config, spec.layers.size()));
  float scale = 1;
  if (config.has("attention_value_scale")) {
    TRY(scale, multiplier(config, "attention_value_scale"));
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i].mixer = windows[i] ? local : full;
    spec.layers[i].scales.mixer = scale;
  }
  TRY_VOID(set_ropes_by_kind(spec, config, dialect));
  TRY(spec.ropes[1].theta, config.number("swa_rope_theta", {1, 1e12}, spec.ropes[1].theta));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  spec.predictor.reset();
  spec.names.attention.sinks = "self_attn.attention_sink_bias";
  spec.names.ignorable.emplace_back("model.mtp.*");
  return spec;
}

// MiMo-V2.5 (Xiaomi, 2026): one matrix has queries, keys and values. In fp8, it consists of a chunk for each
// key head of the layers with full attention.
static Result<ModelSpec> describe_mimo_v2(const Config& config) {
  TRY(ModelSpec spec, describe_mimo_v2_flash(config));
  spec.names.attention.qkv = {"self_attn.qkv_proj"};
  TRY(const PackedFormat format, packed_format(config));
  if (format.qkv_chunks == 0) return spec;
  spec.names.attention.qkv_order = QkvOrder::by_chunk;
  spec.names.attention.qkv_chunks = static_cast<int>(format.qkv_chunks);
  for (const LayerSpec& layer : spec.layers)
    if (layer.attention().kv_heads % spec.names.attention.qkv_chunks != 0)
      return invalid("swa_num_key_value_heads", "{} {} must be a multiple of num_key_value_heads {}",
                     config.where("swa_num_key_value_heads"), layer.attention().kv_heads, format.qkv_chunks);
  return spec;
}

std::span<const Family> mimo_v2_families() {
  static constexpr Family kRows[] = {{"MiMoV2FlashForCausalLM", describe_mimo_v2_flash},
                                     {"MiMoV2ForCausalLM", describe_mimo_v2}};
  return kRows;
}

}  // namespace octavo
