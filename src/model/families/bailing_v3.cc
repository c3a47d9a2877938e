// Ling 3 (Ant Group, 2026): most layers have Kimi delta attention with a strongest decay, the last of each
// group has gated latent attention. The experts are DeepSeek-V3's.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/step3.h"

namespace octavo {
namespace {

// Returns the limits of the layers' gates; 0: no limit. Layers after the end of the list have no limit.
Result<std::vector<double>> read_limits(const Config& config, std::string_view field, std::size_t layers) {
  std::vector<double> limits(layers, 0.0);
  if (!config.is_list(field)) return limits;
  for (std::size_t count = layers; count > 0; --count)
    if (auto read = config.numbers(field, count, {0, 1e6})) {
      std::ranges::copy(*read, limits.begin());
      return limits;
    }
  TRY(limits, config.numbers(field, layers, {0, 1e6}));
  return limits;
}

Result<bool> read_head_gate(const Config& config) {
  constexpr std::string_view kField = "gated_attention_proj_granularity_type";
  TRY(const std::string kind, config.text(kField, ""));
  if (kind.empty() || kind == "head_wise") return kind == "head_wise";
  return field_failure(kField, ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be head_wise", config.where(kField), kind);
}

Result<KimiDelta> read_delta(const Config& config, const NormSpec& norm) {
  TRY_VOID(refuse(config, "no_kda_lora", false));
  KimiDelta delta{.norm = norm, .one_matrix = true};
  TRY(delta.heads, config.integer("num_attention_heads", kHeads));
  TRY(delta.head_dim, config.integer("head_dim", {1, kMaxStateDim}));
  TRY(delta.conv_width, config.integer("short_conv_kernel_size", {2, kMaxConvWidth}));
  TRY(const bool bounded, config.boolean("kda_safe_gate", true));
  if (!bounded) return delta;
  TRY(const double least, config.number("kda_lower_bound", {-1e3, -1e-3}, -5.0));
  delta.least_log = static_cast<float>(least);
  return delta;
}

// `before` is the prefix of attention's tensors.
void set_names(Names& names, const std::string& before) {
  names.embedding.tokens = "word_embeddings";
  names.attention.out = before + "dense";
  names.attention.head_gate = before + "g_proj";
  LatentAttention::Names& latent = names.of<LatentAttention>();
  latent = {};
  for (std::string* name :
       {&latent.q, &latent.q_down, &latent.q_norm, &latent.q_up, &latent.down, &latent.norm, &latent.up})
    name->replace(0, std::string_view("self_attn.").size(), before);
  names.of<KimiDelta>().prefix = before;
  names.of<Experts>().choice_bias = "mlp.gate.expert_bias";
}

}  // namespace

Result<ModelSpec> describe_bailing_v3(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"scoring_func", "score_function"}});
  for (const char* field : {"use_bias", "use_qkv_bias"}) TRY_VOID(refuse(config, field, true));
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  TRY_VOID(set_shared_width(spec, config));
  spec.predictor.reset();
  TRY(const bool gated, read_head_gate(config));
  TRY(const KimiDelta delta, read_delta(config, spec.final_norm));
  TRY(const int period, config.integer("layer_group_size", {1, 1024}));
  const std::size_t layers = spec.layers.size(),
                    whole = layers / static_cast<std::size_t>(period) * static_cast<std::size_t>(period);
  TRY(const std::vector<double> limits, read_limits(config, "expert_swiglu_limit_list", layers));
  TRY(const std::vector<double> shared_limits, read_limits(config, "share_expert_swiglu_limit_list", layers));
  for (std::size_t i = 0; i < layers; ++i) {
    LayerSpec& layer = spec.layers[i];
    auto& latent = std::get<LatentAttention>(layer.mixer);
    latent.norm = spec.final_norm;
    latent.head_gate = gated;
    if ((i + 1) % static_cast<std::size_t>(period) != 0 && i < whole) layer.mixer = delta;
    auto* experts = std::get_if<Experts>(&layer.feed_forward);
    if (experts == nullptr) continue;
    experts->router.renormalise = true;
    experts->expert.limit = static_cast<float>(limits[i]);
    if (experts->shared) set_silu_limit(*experts->shared, shared_limits[i]);
  }
  set_names(spec.names, "attention.");
  spec.other_names = spec.names;
  set_names(*spec.other_names, "self_attn.");
  return spec;
}

std::span<const Family> bailing_v3_families() {
  static constexpr Family kRows[] = {{"BailingMoeV3ForCausalLM", describe_bailing_v3}};
  return kRows;
}

}  // namespace octavo
