// Llama 2 and 3 (Touvron et al., 2023; Grattafiori et al., 2024), and variants that differ in a field, an
// activation or the tensor names.
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

Result<ModelSpec> describe_with_biases(const Config& config, std::string_view qkv, std::string_view out) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY(const bool qkv_bias, config.boolean(qkv, false));
  TRY(const bool out_bias, config.boolean(out, false));
  TRY(const bool mlp_bias, config.boolean("mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases.qkv = qkv_bias;
    layer.attention().biases.out = out_bias;
    layer.mlp().up_bias = layer.mlp().down_bias = mlp_bias;
  }
  return spec;
}

Result<> set_minicpm_multipliers(ModelSpec& spec, const Config& config) {
  TRY(spec.embedding.scale, multiplier(config, "scale_emb"));
  TRY(const float depth, multiplier(config, "scale_depth"));
  TRY(const float base, multiplier(config, "dim_model_base"));
  spec.logits.scale = base / static_cast<float>(spec.dim);
  for (LayerSpec& layer : spec.layers)
    layer.scales.residual = depth / std::sqrt(static_cast<float>(spec.layers.size()));
  return {};
}

}  // namespace

Result<ModelSpec> describe_llama(const Config& config) {
  return describe_with_biases(config, "attention_bias", "attention_bias");
}

// IQuest-Coder (2026). Queries, keys and values are clipped, as in its published code.
static Result<ModelSpec> describe_iquest_coder(const Config& config) {
  TRY_VOID(refuse(config, "use_sliding_window", true));
  TRY(ModelSpec spec, describe_llama(config));
  TRY(const float clip, read_clip(config));
  for (LayerSpec& layer : spec.layers) layer.attention().clip = clip;
  return spec;
}

// openPangu Embedded (Huawei, 2025).
static Result<ModelSpec> describe_pangu(const Config& config) {
  TRY_VOID(refuse(config, "sandwich_norm", true));
  if (config.has("interleaved_sliding_window"))
    return field_failure("interleaved_sliding_window", ErrorCode::unsupported,
                         "{} is set, but sliding windows are not supported for this model family",
                         config.where("interleaved_sliding_window"));
  return describe_with_biases(config, "bias", "bias");
}

// AFM (Arcee, 2025) has ungated MLPs.
static Result<ModelSpec> describe_arcee(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  for (LayerSpec& layer : spec.layers) layer.mlp().gated = false;
  spec.names.mlp.up = {"mlp.up_proj"};
  return spec;
}

static Result<ModelSpec> describe_baichuan(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  spec.names.attention.qkv = {"self_attn.W_pack"};
  return spec;
}

// Baichuan 13B (2023) has ALiBi. Some checkpoints with this name are 7B models, which have RoPE, or Baichuan
// 2 models, which normalise the output matrix.
static Result<ModelSpec> describe_baichuan_13b(const Config& config) {
  constexpr int kDimOf7B = 4096;
  TRY(const int dim, config.integer("hidden_size", {1, 1 << 20}));
  const bool rotates = dim == kDimOf7B;
  TRY(ModelSpec spec,
      describe_dense(config, {.positions = rotates ? "max_position_embeddings" : "model_max_length",
                              .rotary = rotates}));
  if (constexpr int kBaichuan2 = 125696; spec.vocab == kBaichuan2)
    return field_failure("vocab_size", ErrorCode::unsupported,
                         "{} is {}, but Baichuan 2 is not supported, because its output matrix is normalised",
                         config.where("vocab_size"), spec.vocab);
  for (LayerSpec& layer : spec.layers)
    if (!rotates) layer.attention().scores.slopes = alibi_slopes(layer.attention().q_heads, 8);
  spec.names.attention.qkv = {"self_attn.W_pack"};
  return spec;
}

// CWM (Meta, 2025) has sliding windows.
static Result<ModelSpec> describe_cwm(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_windows(spec, config, [](int layer) { return layer % 4 != 0; }));
  return spec;
}

// Helium (Kyutai, 2025): RoPE pairs adjacent elements.
static Result<ModelSpec> describe_helium(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.out = false;
  spec.ropes[0].interleaved = true;
  return spec;
}

// Jais 2 (Inception, 2025) has layer norms and ungated MLPs.
static Result<ModelSpec> describe_jais2(const Config& config) {
  TRY(ModelSpec spec,
      describe_dense(config, {.eps = "layer_norm_eps", .norm = {.kind = NormKind::layer, .bias = true}}));
  TRY_VOID(leave_out_gates(spec, config, true));
  return spec;
}

static Result<ModelSpec> describe_internlm(const Config& config) {
  return describe_with_biases(config, "bias", "bias");
}

// EXAONE 3 and 3.5 (LG AI Research, 2024): Llama with GPT-2's tensor names.
static Result<ModelSpec> describe_exaone(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.layers = "num_layers",
                                              .activation = "activation_function",
                                              .eps = "layer_norm_epsilon"}));
  spec.names = {
      .prefixes = {"transformer."},
      .embedding = {.tokens = "wte"},
      .final_norm = "ln_f",
      .layers = "h.",
      .attention = {.norm = "ln_1",
                    .qkv = {"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"},
                    .out = "attn.attention.out_proj"},
      .mlp = {.norm = "ln_2", .up = {"mlp.c_fc_0", "mlp.c_fc_1"}, .down = "mlp.c_proj"}};
  return spec;
}

// InternLM2 (Cai et al., 2024).
Result<ModelSpec> describe_internlm2(const Config& config) {
  TRY(ModelSpec spec, describe_with_biases(config, "bias", "bias"));
  spec.names = {
      .lm_head = "output",
      .embedding = {.tokens = "tok_embeddings"},
      .attention = {.norm = "attention_norm",
                    .qkv = {"attention.wqkv"},
                    .qkv_order = QkvOrder::by_head,
                    .out = "attention.wo"},
      .mlp = {.norm = "ffn_norm", .up = {"feed_forward.w1", "feed_forward.w3"}, .down = "feed_forward.w2"}};
  return spec;
}

static Result<ModelSpec> describe_internlm3(const Config& config) {
  TRY(ModelSpec spec, describe_with_biases(config, "qkv_bias", "bias"));
  TRY(const bool bias, config.boolean("bias", false));
  for (LayerSpec& layer : spec.layers) layer.mlp().up_bias = layer.mlp().down_bias = bias;
  return spec;
}

// MiniCPM (Hu et al., 2024): multipliers of embeddings, residuals and logits.
static Result<ModelSpec> describe_minicpm(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_minicpm_multipliers(spec, config));
  return spec;
}

// MiniCPM3 (2024): MiniCPM with DeepSeek-V2's latent attention.
static Result<ModelSpec> describe_minicpm3(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v2(config));
  TRY_VOID(set_minicpm_multipliers(spec, config));
  spec.ropes[0].interleaved = false;
  return spec;
}

// Orion (OrionStar, 2024): layer norms.
static Result<ModelSpec> describe_orion(const Config& config) {
  return describe_dense(config, {.norm = {.kind = NormKind::layer, .bias = true}});
}

// Seed-OSS (ByteDance, 2025).
static Result<ModelSpec> describe_seed_oss(const Config& config) {
  return describe_with_biases(config, "attention_bias", "attention_out_bias");
}

// SmolLM3 (Hugging Face, 2025) has no RoPE in every fourth layer.
static Result<ModelSpec> describe_smollm3(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(set_rope_layers(spec, config));
  TRY(const bool windows, config.boolean("use_sliding_window", false));
  if (!windows) return spec;
  const std::vector<LayerSpec> layers = spec.layers;
  TRY_VOID(set_windows(
      spec, config, [&](int layer) { return layers[static_cast<std::size_t>(layer)].attention().rope < 0; }));
  return spec;
}

std::span<const Family> llama_families() {
  static constexpr Family kRows[] = {
      {"AquilaForCausalLM", describe_llama},
      {"AquilaModel", describe_llama},
      {"ArceeForCausalLM", describe_arcee},
      {"BaiChuanForCausalLM", describe_baichuan},
      {"BaichuanForCausalLM", describe_baichuan_13b},
      {"CwmForCausalLM", describe_cwm},
      {"ExaoneForCausalLM", describe_exaone},
      {"HeliumForCausalLM", describe_helium},
      {"IQuestCoderForCausalLM", describe_iquest_coder},
      {"InternLM2ForCausalLM", describe_internlm2},
      {"InternLM3ForCausalLM", describe_internlm3},
      {"InternLMForCausalLM", describe_internlm},
      {"Jais2ForCausalLM", describe_jais2},
      {"LLaMAForCausalLM", describe_llama},
      {"LlamaForCausalLM", describe_llama},
      {"LlamaForSequenceClassification", describe_decoder_classifier<describe_llama>},
      {"LlamaModel", describe_embedder<describe_llama>},
      {"MiniCPM3ForCausalLM", describe_minicpm3},
      {"MiniCPMForCausalLM", describe_minicpm},
      {"OrionForCausalLM", describe_orion},
      {"PanguEmbeddedForCausalLM", describe_pangu},
      {"SeedOssForCausalLM", describe_seed_oss},
      {"SmolLM3ForCausalLM", describe_smollm3},
      {"TeleChat3ForCausalLM", describe_llama},
      {"XverseForCausalLM", describe_llama},
      {"YiForCausalLM", describe_llama},
  };
  return kRows;
}

}  // namespace octavo
