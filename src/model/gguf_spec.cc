#include "model/gguf_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "model/families/families.h"
#include "model/gguf_config.h"

namespace octavo {
namespace {

constexpr std::array kArchitectures = {
    GgufArchitecture{"afmoe", "AfmoeForCausalLM"},
    GgufArchitecture{"arcee", "ArceeForCausalLM", true},
    GgufArchitecture{"baichuan", "BaiChuanForCausalLM", true},
    GgufArchitecture{"bloom", "BloomForCausalLM"},
    GgufArchitecture{"chatglm", "GlmForCausalLM"},
    GgufArchitecture{"cohere2", "Cohere2ForCausalLM"},
    GgufArchitecture{"command-r", "CohereForCausalLM"},
    GgufArchitecture{"deepseek2", "DeepseekV3ForCausalLM"},
    GgufArchitecture{"deepseek32", "DeepseekV32ForCausalLM"},
    GgufArchitecture{"dots1", "Dots1ForCausalLM"},
    GgufArchitecture{"ernie4_5", "Ernie4_5ForCausalLM"},
    GgufArchitecture{"ernie4_5-moe", "Ernie4_5_MoeForCausalLM"},
    GgufArchitecture{"exaone4", "Exaone4ForCausalLM"},
    GgufArchitecture{"exaone-moe", "ExaoneMoeForCausalLM"},
    GgufArchitecture{"falcon", "FalconForCausalLM"},
    GgufArchitecture{"falcon-h1", "FalconH1ForCausalLM"},
    GgufArchitecture{"gemma", "GemmaForCausalLM"},
    GgufArchitecture{"gemma2", "Gemma2ForCausalLM"},
    GgufArchitecture{"gemma3", "Gemma3ForCausalLM"},
    GgufArchitecture{"gemma3n", "Gemma3nForCausalLM"},
    GgufArchitecture{"gemma4", "Gemma4ForCausalLM"},
    GgufArchitecture{"glm-dsa", "GlmMoeDsaForCausalLM"},
    GgufArchitecture{"glm4", "Glm4ForCausalLM"},
    GgufArchitecture{"glm4moe", "Glm4MoeForCausalLM"},
    GgufArchitecture{"gpt-oss", "GptOssForCausalLM"},
    GgufArchitecture{"gpt2", "GPT2LMHeadModel"},
    GgufArchitecture{"gptneox", "GPTNeoXForCausalLM"},
    GgufArchitecture{"granite", "GraniteForCausalLM", true},
    GgufArchitecture{"granitehybrid", "GraniteMoeHybridForCausalLM", true},
    GgufArchitecture{"granitemoe", "GraniteMoeSharedForCausalLM", true},
    GgufArchitecture{"hunyuan-dense", "HunYuanDenseV1ForCausalLM"},
    GgufArchitecture{"hunyuan-moe", "HunYuanMoEV1ForCausalLM"},
    GgufArchitecture{"internlm2", "InternLM2ForCausalLM", true},
    GgufArchitecture{"jamba", "JambaForCausalLM"},
    GgufArchitecture{"lfm2", "Lfm2ForCausalLM"},
    GgufArchitecture{"lfm2moe", "Lfm2MoeForCausalLM"},
    GgufArchitecture{"llama", "LlamaForCausalLM", true},
    GgufArchitecture{"llama4", "Llama4ForCausalLM"},
    GgufArchitecture{"mamba", "MambaForCausalLM"},
    GgufArchitecture{"mamba2", "Mamba2ForCausalLM"},
    GgufArchitecture{"minimax-m2", "MiniMaxM2ForCausalLM"},
    GgufArchitecture{"mistral3", "Ministral3ForCausalLM", true},
    GgufArchitecture{"mistral4", "Mistral4ForCausalLM"},
    GgufArchitecture{"mpt", "MptForCausalLM"},
    GgufArchitecture{"nemotron", "NemotronForCausalLM"},
    GgufArchitecture{"nemotron_h", "NemotronHForCausalLM"},
    GgufArchitecture{"nemotron_h_moe", "NemotronHForCausalLM"},
    GgufArchitecture{"olmo", "OlmoForCausalLM", true},
    GgufArchitecture{"olmo2", "Olmo2ForCausalLM"},
    GgufArchitecture{"olmoe", "OlmoeForCausalLM"},
    GgufArchitecture{"phi2", "PhiForCausalLM"},
    GgufArchitecture{"phi3", "Phi3ForCausalLM"},
    GgufArchitecture{"phimoe", "PhimoeForCausalLM"},
    GgufArchitecture{"qwen2", "Qwen2ForCausalLM"},
    GgufArchitecture{"qwen2moe", "Qwen2MoeForCausalLM"},
    GgufArchitecture{"qwen3", "Qwen3ForCausalLM"},
    GgufArchitecture{"qwen35", "Qwen3_5ForCausalLM"},
    GgufArchitecture{"qwen35moe", "Qwen3_5MoeForCausalLM"},
    GgufArchitecture{"qwen3moe", "Qwen3MoeForCausalLM"},
    GgufArchitecture{"qwen3next", "Qwen3NextForCausalLM"},
    GgufArchitecture{"rwkv7", "RWKV7ForCausalLM"},
    GgufArchitecture{"seed_oss", "SeedOssForCausalLM"},
    GgufArchitecture{"smollm3", "SmolLM3ForCausalLM", true},
    GgufArchitecture{"stablelm", "StableLmForCausalLM"},
    GgufArchitecture{"starcoder", "GPTBigCodeForCausalLM"},
    GgufArchitecture{"starcoder2", "Starcoder2ForCausalLM"},
};

// Which tensors there are says what else the network has: those of each layer, or of some.
class Layers {
 public:
  explicit Layers(const Gguf& gguf) {
    for (const StoredTensor& tensor : gguf.tensors)
      if (const std::size_t dot = tensor.name.find('.', kBegin.size());
          tensor.name.starts_with(kBegin) && dot != tensor.name.npos)
        names_.insert(tensor.name.substr(dot + 1));
  }
  bool have(std::string_view name) const { return names_.contains(name); }

 private:
  static constexpr std::string_view kBegin = "blk.";
  std::set<std::string, std::less<>> names_;
};

void adapt(LayerSpec& layer, const Layers& layers) {
  if (auto* attention = std::get_if<Attention>(&layer.mixer)) {
    attention->qkv_bias = layers.have("attn_qkv.bias") || layers.have("attn_q.bias");
    attention->out_bias = layers.have("attn_output.bias");
    attention->qk_norm_spec.weight_offset = 0;
  }
  if (auto* mlp = std::get_if<Mlp>(&layer.feed_forward)) {
    mlp->up_bias = layers.have("ffn_up.bias");
    mlp->down_bias = layers.have("ffn_down.bias");
  }
  for (NormSpec* norm : {&layer.pre_norm, &layer.post_norm}) norm->weight_offset = 0;
  // Files of Qwen3-Next have b and a of a key head's value heads beside each other, those of Qwen3.5 have
  // none of a key head's value heads beside each other.
  if (auto* net = std::get_if<DeltaNet>(&layer.mixer)) net->tiled = layers.have("ssm_beta.weight");
  layer.scaled = layer.scaled && layers.have("layer_output_scale.weight");
}

Names names_of(const Gguf& gguf, const Layers& layers) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool rwkv = layers.have("time_mix_lerp_fused.weight");  // whose second norm is the MLP's
  // Falcon's norm of attention came later, and Seed-OSS calls its second one by its place.
  const auto* mlp_norm = rwkv                                        ? "attn_norm_2"
                         : layers.have("attn_norm_2.weight")         ? "attn_norm"
                         : layers.have("ffn_norm.weight")            ? "ffn_norm"
                         : layers.have("post_attention_norm.weight") ? "post_attention_norm"
                                                                     : "attn_norm";  // layers of one half
  const bool fused_experts = layers.have("ffn_gate_up_exps.weight");
  const bool hybrid = layers.have("ssm_a");  // whose fused projections are those of delta nets
  const bool halves = layers.have("attn_k_b.weight");
  return {
      .prefixes = {""},
      .lm_head = "output",
      .embedding = "token_embd",
      .positions = "position_embd",
      .embedding_norm = "token_embd_norm",
      .final_norm =
          gguf.find("output_norm.weight") != nullptr ? "output_norm" : "token_embd_norm",  // the second: LFM2
      .layers = "blk.",
      .attention_norm = layers.have("attn_norm_2.weight") && !rwkv ? "attn_norm_2" : "attn_norm",
      .attention_post_norm = "post_attention_norm",
      .mlp_norm = mlp_norm,
      .mlp_post_norm = "post_ffw_norm",
      .q_norm = "attn_q_norm",
      .k_norm = "attn_k_norm",
      .qkv = layers.have("attn_qkv.weight") && !hybrid    ? list("attn_qkv")
             : layers.have("attn_gate.weight") && !hybrid ? list("attn_q", "attn_k", "attn_v", "attn_gate")
                                                          : list("attn_q", "attn_k", "attn_v"),
      .out = "attn_output",
      .up = rwkv                             ? list("channel_mix_key")
            : layers.have("ffn_gate.weight") ? list("ffn_gate", "ffn_up")
                                             : list("ffn_up"),
      .down = rwkv ? "channel_mix_value" : "ffn_down",
      .sinks = "attn_sinks.weight",
      .layer_scale = "layer_output_scale.weight",
      .layer_input_table = "per_layer_token_embd",
      .layer_input_projection = "per_layer_model_proj",
      .layer_input_norm = "per_layer_proj_norm",
      .layer_input_gate = "inp_gate",
      .layer_input_out = "proj",
      .layer_input_post_norm = "post_norm",
      .stream_in = "altup_proj",
      .stream_out = "altup_unembd_proj",
      .streams = "altup_",
      .laurel = "laurel_",
      .latent_q = "attn_q",
      .latent_q_down = "attn_q_a",
      .latent_q_norm = "attn_q_a_norm",
      .latent_q_up = "attn_q_b",
      .latent_down = "attn_kv_a_mqa",
      .latent_norm = "attn_kv_a_norm",
      .latent_up = "attn_kv_b",
      .latent_up_key = halves ? "attn_k_b" : "",
      .latent_up_value = halves ? "attn_v_b" : "",
      .indexer = "indexer.",
      .delta_in = layers.have("ssm_in.weight") ? list("ssm_in") : list("attn_qkv", "attn_gate"),
      .delta_ba = layers.have("ssm_ba.weight") ? list("ssm_ba") : list("ssm_beta", "ssm_alpha"),
      .delta_conv = list("ssm_conv1d"),
      .delta_a_log = "ssm_a",
      .delta_rates = true,
      .delta_dt_bias = "ssm_dt.bias",
      .delta_norm = "ssm_norm",
      .delta_out = "ssm_out",
      .conv_in = "shortconv.in_proj",
      .conv = "shortconv.conv",
      .conv_out = "shortconv.out_proj",
      .mamba = "ssm_",
      .time_mix = "time_mix_",
      .time_shares = list("time_mix_lerp_fused.weight"),
      .channel_shares = "channel_mix_lerp_k.weight",
      .router = "ffn_gate_inp",
      .router_norm = "ffn_gate_inp.scale",
      .expert_scales = "ffn_down_exps.scale",
      .choice_bias = "exp_probs_b.bias",
      .gguf = true,
      .expert_storage = ExpertStorage::stacked,
      .expert_up = fused_experts                         ? list("ffn_gate_up_exps.weight")
                   : layers.have("ffn_gate_exps.weight") ? list("ffn_gate_exps.weight", "ffn_up_exps.weight")
                                                         : list("ffn_up_exps.weight"),
      .expert_down = "ffn_down_exps.weight",
      .expert_up_bias = list("ffn_gate_exps.bias", "ffn_up_exps.bias"),
      .expert_down_bias = "ffn_down_exps.bias",
      .expert_latent = "ffn_latent_down",
      .expert_lift = "ffn_latent_up",
      .shared_up = layers.have("ffn_gate_shexp.weight") ? list("ffn_gate_shexp", "ffn_up_shexp")
                                                        : list("ffn_up_shexp"),
      .shared_down = "ffn_down_shexp",
      .shared_gate = "ffn_gate_inp_shexp",
      .experts_norm = "pre_ffw_norm_2",
      .experts_post_norm = "post_ffw_norm_2",
      .beside_experts_post_norm = "post_ffw_norm_1",
      .ignorable = {"rope_freqs.weight", "rope_factors_*", "*.attn_rot_embd.weight"},
  };
}

void adapt(ModelSpec& spec, const Gguf& gguf, bool interleaved) {
  const Layers layers(gguf);
  for (LayerSpec& layer : spec.layers) adapt(layer, layers);
  spec.final_norm.weight_offset = 0;
  spec.logits_bias = gguf.find("output.bias") != nullptr;
  spec.embed_scale_rounds = false;  // llama.cpp, whose files these are, keeps it in single precision
  for (RopeSpec& rope : spec.ropes) rope.interleaved = rope.interleaved || interleaved;
  spec.names = names_of(gguf, layers);
  // Layers that read the keys and values of others may have matrices for them.
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (const auto* attention = std::get_if<Attention>(&spec.layers[i].mixer);
        attention != nullptr && attention->source >= 0)
      for (const char* unused : {"attn_k", "attn_v", "attn_k_norm"})
        spec.names.ignorable.push_back(fmt::format("blk.{}.{}.weight", i, unused));
  // Of RWKV-7's first layer nothing reads a share of its own values.
  if (!spec.layers.empty() && std::holds_alternative<TimeMix>(spec.layers[0].mixer))
    for (const char* unused : {"v0", "v1", "v2"})
      spec.names.ignorable.push_back(fmt::format("blk.0.time_mix_{}.weight", unused));
  spec.other_names.reset();
  spec.predictor.reset();  // under other names
}

// That the file's router scores experts as the family does.
Result<> check_router(const ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  constexpr double kSoftmax = 1, kSigmoid = 2;  // another one: softmax over those chosen
  const std::string key = fmt::format("{}.expert_gating_func", architecture);
  TRY(const auto stored, gguf.metadata.number(key));
  for (const LayerSpec& layer : spec.layers) {
    const auto* experts = std::get_if<Experts>(&layer.feed_forward);
    if (experts == nullptr || stored.value_or(0) == 0) continue;
    const double own = experts->router.scores == RouterScores::sigmoid ? kSigmoid : kSoftmax;
    if (*stored == own || (own == kSoftmax && *stored != kSigmoid && experts->router.renormalise)) continue;
    return field_failure("expert_gating_func", ErrorCode::unsupported, "{}: {} is {}; supported here is {}",
                         gguf.metadata.what(), key, *stored, own);
  }
  return {};
}

}  // namespace

Result<ModelSpec> gguf_spec(const Gguf& gguf) {
  TRY(const auto name, gguf.metadata.text("general.architecture"));
  const auto* architecture = std::ranges::find(kArchitectures, name.value_or(""), &GgufArchitecture::name);
  if (architecture == kArchitectures.end())
    return field_failure("general.architecture", ErrorCode::unsupported,
                         "{}: general.architecture is \"{}\"; supported are {}", gguf.metadata.what(),
                         name.value_or(""),
                         fmt::join(kArchitectures | std::views::transform(&GgufArchitecture::name), ", "));
  TRY(const Config config, gguf_config(gguf, *architecture));
  TRY(ModelSpec spec, describe(config));
  TRY_VOID(check_router(spec, gguf, architecture->name));
  adapt(spec, gguf, architecture->interleaved);
  TRY(const auto predictors,
      gguf.metadata.count(fmt::format("{}.nextn_predict_layers", architecture->name), kGgufLayersMax));
  for (std::int64_t i = 0; i < predictors.value_or(0); ++i)  // they come behind the others
    spec.names.ignorable.push_back(fmt::format("blk.{}.*", std::ssize(spec.layers) + i));
  return spec;
}

}  // namespace octavo
