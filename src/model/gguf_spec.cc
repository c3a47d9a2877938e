#include "model/gguf_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <set>

#include "model/families/families.h"
#include "model/gguf_config.h"

namespace octavo {
namespace {

constexpr std::array kArchitectures = {
    GgufArchitecture{"afmoe", "AfmoeForCausalLM"},
    GgufArchitecture{"apertus", "ApertusForCausalLM"},
    GgufArchitecture{"arcee", "ArceeForCausalLM", true},
    GgufArchitecture{"baichuan", "BaiChuanForCausalLM", true},
    GgufArchitecture{"bailingmoe", "BailingMoeForCausalLM", true},
    GgufArchitecture{"bailingmoe2", "BailingMoeV2ForCausalLM"},
    GgufArchitecture{"bert", "BertModel"},
    GgufArchitecture{"bloom", "BloomForCausalLM"},
    GgufArchitecture{"chatglm", "GlmForCausalLM"},
    GgufArchitecture{"cohere2", "Cohere2ForCausalLM"},
    GgufArchitecture{"cohere2moe", "Cohere2MoeForCausalLM"},
    GgufArchitecture{"command-r", "CohereForCausalLM"},
    GgufArchitecture{"dbrx", "DbrxForCausalLM"},
    GgufArchitecture{"deci", "DeciLMForCausalLM", true},
    GgufArchitecture{"deepseek", "DeepseekForCausalLM", true},
    GgufArchitecture{"deepseek2", "DeepseekV3ForCausalLM"},
    GgufArchitecture{"deepseek32", "DeepseekV32ForCausalLM"},
    GgufArchitecture{"deepseek4", "DeepseekV4ForCausalLM"},
    GgufArchitecture{"dots1", "Dots1ForCausalLM"},
    GgufArchitecture{"ernie4_5", "Ernie4_5ForCausalLM"},
    GgufArchitecture{"ernie4_5-moe", "Ernie4_5_MoeForCausalLM"},
    GgufArchitecture{"exaone", "ExaoneForCausalLM"},
    GgufArchitecture{"exaone4", "Exaone4ForCausalLM"},
    GgufArchitecture{"exaone-moe", "ExaoneMoeForCausalLM"},
    GgufArchitecture{"falcon", "FalconForCausalLM"},
    GgufArchitecture{"falcon-h1", "FalconH1ForCausalLM"},
    GgufArchitecture{"gemma", "GemmaForCausalLM"},
    GgufArchitecture{"gemma-embedding", "Gemma3TextModel"},
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
    GgufArchitecture{"granite_swa", "GraniteSWAForCausalLM", true},
    GgufArchitecture{"granitehybrid", "GraniteMoeHybridForCausalLM", true},
    GgufArchitecture{"granitemoe", "GraniteMoeSharedForCausalLM", true},
    GgufArchitecture{"hunyuan-dense", "HunYuanDenseV1ForCausalLM"},
    GgufArchitecture{"hunyuan-moe", "HunYuanMoEV1ForCausalLM"},
    GgufArchitecture{"hy_v3", "HYV3ForCausalLM"},
    GgufArchitecture{"internlm2", "InternLM2ForCausalLM", true},
    GgufArchitecture{"jais2", "Jais2ForCausalLM"},
    GgufArchitecture{"jamba", "JambaForCausalLM"},
    GgufArchitecture{"lfm2", "Lfm2ForCausalLM"},
    GgufArchitecture{"lfm2moe", "Lfm2MoeForCausalLM"},
    GgufArchitecture{"jina-bert-v3", "JinaEmbeddingsV3Model"},
    GgufArchitecture{"kimi-linear", "KimiLinearForCausalLM"},
    GgufArchitecture{"llama", "LlamaForCausalLM", true},
    GgufArchitecture{"llama4", "Llama4ForCausalLM"},
    GgufArchitecture{"mamba", "MambaForCausalLM"},
    GgufArchitecture{"mamba2", "Mamba2ForCausalLM"},
    GgufArchitecture{"mellum", "MellumForCausalLM"},
    GgufArchitecture{"mimo2", "MiMoV2FlashForCausalLM"},
    GgufArchitecture{"minicpm", "MiniCPMForCausalLM", true},
    GgufArchitecture{"minicpm3", "MiniCPM3ForCausalLM"},
    GgufArchitecture{"minimax-01", "MiniMaxText01ForCausalLM"},
    GgufArchitecture{"minimax-m2", "MiniMaxM2ForCausalLM"},
    GgufArchitecture{"mistral3", "Ministral3ForCausalLM", true},
    GgufArchitecture{"mistral4", "Mistral4ForCausalLM"},
    GgufArchitecture{"modern-bert", "ModernBertModel"},
    GgufArchitecture{"mpt", "MptForCausalLM"},
    GgufArchitecture{"nemotron", "NemotronForCausalLM"},
    GgufArchitecture{"nemotron_h", "NemotronHForCausalLM"},
    GgufArchitecture{"nemotron_h_moe", "NemotronHForCausalLM"},
    GgufArchitecture{"nomic-bert", "NomicBertModel"},
    GgufArchitecture{"olmo", "OlmoForCausalLM", true},
    GgufArchitecture{"olmo2", "Olmo2ForCausalLM"},
    GgufArchitecture{"olmoe", "OlmoeForCausalLM"},
    GgufArchitecture{"orion", "OrionForCausalLM"},
    GgufArchitecture{"pangu-embedded", "PanguEmbeddedForCausalLM"},
    GgufArchitecture{"phi2", "PhiForCausalLM"},
    GgufArchitecture{"phi3", "Phi3ForCausalLM"},
    GgufArchitecture{"phimoe", "PhimoeForCausalLM"},
    GgufArchitecture{"plamo3", "Plamo3ForCausalLM"},
    GgufArchitecture{"qwen2", "Qwen2ForCausalLM"},
    GgufArchitecture{"qwen2moe", "Qwen2MoeForCausalLM"},
    GgufArchitecture{"qwen2vl", "Qwen2ForCausalLM"},
    GgufArchitecture{"qwen3", "Qwen3ForCausalLM"},
    GgufArchitecture{"qwen35", "Qwen3_5ForCausalLM"},
    GgufArchitecture{"qwen35moe", "Qwen3_5MoeForCausalLM"},
    GgufArchitecture{"qwen3moe", "Qwen3MoeForCausalLM"},
    GgufArchitecture{"qwen3next", "Qwen3NextForCausalLM"},
    GgufArchitecture{"qwen3vl", "Qwen3ForCausalLM"},
    GgufArchitecture{"qwen3vlmoe", "Qwen3MoeForCausalLM"},
    GgufArchitecture{"rwkv7", "RWKV7ForCausalLM"},
    GgufArchitecture{"seed_oss", "SeedOssForCausalLM"},
    GgufArchitecture{"smollm3", "SmolLM3ForCausalLM", true},
    GgufArchitecture{"stablelm", "StableLmForCausalLM"},
    GgufArchitecture{"starcoder", "GPTBigCodeForCausalLM"},
    GgufArchitecture{"starcoder2", "Starcoder2ForCausalLM"},
    GgufArchitecture{"step35", "Step3p5ForCausalLM"},
    GgufArchitecture{"t5", "T5ForConditionalGeneration"},
    GgufArchitecture{"xverse", "XverseForCausalLM", true},
};

constexpr std::int64_t kLabelsMax = 65536;

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
  layer.last_offset.reset();
  // Files of Qwen3-Next have b and a of a key head's value heads beside each other, those of Qwen3.5 have
  // none of a key head's value heads beside each other.
  if (auto* net = std::get_if<DeltaNet>(&layer.mixer)) net->tiled = layers.have("ssm_beta.weight");
  layer.scaled = layer.scaled && layers.have("layer_output_scale.weight");
}

Names names_of(const ModelSpec& spec, const Gguf& gguf, const Layers& layers) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool rwkv = layers.have("time_mix_lerp_fused.weight");  // whose second norm is the MLP's
  const bool lightning = std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
    return std::holds_alternative<LightningAttention>(layer.mixer);  // which has a second norm inside
  });
  const bool two_norms = layers.have("attn_norm_2.weight") && !rwkv && !lightning;
  // Falcon's norm of attention came later, and Seed-OSS calls its second one by its place.
  const auto* mlp_norm = rwkv                                        ? "attn_norm_2"
                         : two_norms                                 ? "attn_norm"
                         : layers.have("ffn_norm.weight")            ? "ffn_norm"
                         : layers.have("post_attention_norm.weight") ? "post_attention_norm"
                         : layers.have("attn_output_norm.weight")    ? "attn_output_norm"  // DBRX
                                                                     : "attn_norm";  // layers of one half
  const bool fused_experts = layers.have("ffn_gate_up_exps.weight");
  const bool hybrid = layers.have("ssm_a") || lightning;  // whose fused projections are not attention's
  const bool halves = layers.have("attn_k_b.weight");
  const bool gates = layers.have("attn_gate.weight");
  const bool head_gates = gates && std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
                            const auto* attention = std::get_if<Attention>(&layer.mixer);
                            return attention != nullptr && attention->head_gate;
                          });
  return {
      .prefixes = {""},
      .lm_head = "output",
      .embedding = "token_embd",
      .positions = "position_embd",
      .token_types = "token_types",
      .embedding_norm = "token_embd_norm",
      .final_norm =
          gguf.find("output_norm.weight") != nullptr ? "output_norm" : "token_embd_norm",  // the second: LFM2
      .layers = "blk.",
      .attention_norm = two_norms ? "attn_norm_2" : "attn_norm",
      .attention_post_norm =
          layers.have("attn_output_norm.weight") ? "attn_output_norm" : "post_attention_norm",
      .mlp_norm = mlp_norm,
      .mlp_post_norm = layers.have("layer_output_norm.weight") ? "layer_output_norm" : "post_ffw_norm",
      .q_norm = "attn_q_norm",
      .k_norm = "attn_k_norm",
      .qkv = layers.have("attn_qkv.weight") && !hybrid ? list("attn_qkv")
             : gates && !head_gates && !hybrid         ? list("attn_q", "attn_k", "attn_v", "attn_gate")
                                                       : list("attn_q", "attn_k", "attn_v"),
      .out = "attn_output",
      .head_gate = "attn_gate",
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
      .kimi = "",
      .lightning_in = "attn_qkv",
      .lightning_gate = "attn_gate",
      .lightning_norm = "attn_norm_2",
      .lightning_out = "attn_output",
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
      .compressed = "",
      .output_streams = "output_hc_",
      .time_mix = "time_mix_",
      .time_shares = list("time_mix_lerp_fused.weight"),
      .channel_shares = "channel_mix_lerp_k.weight",
      .router = "ffn_gate_inp",
      .router_norm = "ffn_gate_inp.scale",
      .expert_scales = "ffn_down_exps.scale",
      .choice_bias = "exp_probs_b.bias",
      .expert_table = "ffn_gate_tid2eid.weight",
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

// Of one half of T5, "enc." or "dec.".
Names half_names(const std::string& half, const Gguf& gguf) {
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  const bool gated = gguf.find(half + "blk.0.ffn_gate.weight") != nullptr;
  return {
      .prefixes = {""},
      .lm_head = gguf.find("output.weight") != nullptr ? "output" : "token_embd",
      .embedding = "token_embd",
      .final_norm = half + "output_norm",
      .layers = half + "blk.",
      .attention_norm = "attn_norm",
      .mlp_norm = "ffn_norm",
      .cross_norm = "cross_attn_norm",
      .qkv = list("attn_q", "attn_k", "attn_v"),
      .out = "attn_o",
      .up = gated ? list("ffn_gate", "ffn_up") : list("ffn_up"),
      .down = "ffn_down",
      .distance_bias = half + "blk.0.attn_rel_b.weight",
      .cross_q = "cross_attn_q",
      .cross_kv = list("cross_attn_k", "cross_attn_v"),
      .cross_out = "cross_attn_o",
  };
}

// A network that reads prompts with an encoder.
void adapt_halves(ModelSpec& spec, const Gguf& gguf) {
  ModelSpec tower = *spec.tower;
  tower.names = half_names("enc.", gguf);
  tower.names.ignorable = {"dec.*", "output.weight"};
  spec.names = half_names("dec.", gguf);
  spec.names.ignorable = {"enc.*", "dec.blk.0.cross_attn_rel_b.weight"};
  spec.other_names.reset();
  spec.tower = std::make_shared<const ModelSpec>(std::move(tower));
}

void adapt(ModelSpec& spec, const Gguf& gguf, bool interleaved) {
  if (spec.tower) return adapt_halves(spec, gguf);
  const Layers layers(gguf);
  for (LayerSpec& layer : spec.layers) adapt(layer, layers);
  spec.final_norm.weight_offset = 0;
  spec.logits_bias = gguf.find("output.bias") != nullptr;
  spec.embed_scale_rounds = false;  // llama.cpp, whose files these are, keeps it in single precision
  for (RopeSpec& rope : spec.ropes) rope.interleaved = rope.interleaved || interleaved;
  spec.names = names_of(spec, gguf, layers);
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

// Of a reranker or classifier: scores of the last token's row; of an encoder's first one, or, of ModernBERT,
// of the mean, behind a layer that it has for that.
Result<> set_scores(ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  const StoredTensor* scores = gguf.find("cls.output.weight");
  const bool encoder = architecture == "bert", modern = architecture == "modern-bert";
  for (const char* needed : {"cls.output.weight", "cls.weight"}) {
    const StoredTensor* tensor = gguf.find(needed);
    if (tensor == nullptr && (tensor == scores || encoder || modern))
      return failure(ErrorCode::unsupported, "{}: {}.pooling_type is 4 (scores) and there is no {}",
                     gguf.metadata.what(), architecture, needed);
  }
  if (scores->shape.size() != 2 || scores->shape[0] > kLabelsMax)
    return failure(ErrorCode::corrupt, "{}: cls.output.weight must have a row for each of 1 to {} labels",
                   gguf.metadata.what(), kLabelsMax);
  Head head{.pool = modern ? Pool::mean : encoder ? Pool::first : Pool::last};
  if (gguf.find("cls.weight") != nullptr) {
    HeadLayer dense{.name = "cls",
                    .outputs = spec.dim,
                    .bias = gguf.find("cls.bias") != nullptr,
                    .activation = modern ? Activation::gelu : Activation::tanh};
    if (gguf.find("cls.norm.weight") != nullptr) {
      dense.norm = spec.final_norm;
      dense.norm.bias = gguf.find("cls.norm.bias") != nullptr;
      dense.norm_name = "cls.norm";
    }
    head.layers.push_back(std::move(dense));
  }
  TRY(const std::vector<std::string_view> labels,
      gguf.metadata.texts(fmt::format("{}.classifier.output_labels", architecture)));
  HeadLayer last{.name = "cls.output",
                 .outputs = static_cast<int>(scores->shape[0]),
                 .bias = gguf.find("cls.output.bias") != nullptr};
  if (std::ranges::equal(labels, std::array{"yes", "no"}) && last.outputs == 2 && !last.bias) {
    last.rows = {0, 1};  // Qwen3's rerankers: how much rather the model says yes than no
    last.table = 2;
    last.outputs = 1;
    last.difference = true;
  }
  for (int i = 0; i < last.outputs; ++i)
    head.labels.push_back(std::ssize(labels) == last.outputs
                              ? std::string(labels[static_cast<std::size_t>(i)])
                              : fmt::format("LABEL_{}", i));
  head.label_activation = last.outputs == 1 ? LabelActivation::sigmoid : LabelActivation::softmax;
  head.layers.push_back(std::move(last));
  spec.head = std::move(head);
  return {};
}

// How a model makes one vector of a text's, or scores, where the file says it: those that generate have no
// such key.
Result<> set_head(ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  TRY(const auto causal, gguf.metadata.boolean(fmt::format("{}.attention.causal", architecture)));
  for (LayerSpec& layer : spec.layers)
    if (auto* attention = std::get_if<Attention>(&layer.mixer); attention && !causal.value_or(true))
      attention->causal = false;
  const std::string key = fmt::format("{}.pooling_type", architecture);
  constexpr std::pair<double, Pool> kPools[] = {{1, Pool::mean}, {2, Pool::first}, {3, Pool::last}};
  TRY(const auto stored, gguf.metadata.number(key));
  if (stored == 4) return set_scores(spec, gguf, architecture);
  if (stored.value_or(0) != 0) {
    const auto* found = std::ranges::find(kPools, *stored, &std::pair<double, Pool>::first);
    if (found == std::end(kPools))
      return field_failure(
          "pooling_type", ErrorCode::unsupported,
          "{}: {} is {}; supported are 1 (mean), 2 (the first token's), 3 (the last one's) and 4 (scores)",
          gguf.metadata.what(), key, *stored);
    if (!spec.head) spec.head = Head{.normalise = true};
    spec.head->pool = found->second;
  }
  for (const char* matrix : {"dense_2", "dense_3"})  // EmbeddingGemma's, of Sentence Transformers
    if (const StoredTensor* tensor = gguf.find(fmt::format("{}.weight", matrix));
        tensor != nullptr && spec.head && tensor->shape[0] <= 1 << 20)
      spec.head->layers.push_back(
          {.name = matrix, .outputs = static_cast<int>(tensor->shape[0]), .bias = false});
  return {};
}

// xIELU's numbers of a layer, or of all.
Result<std::vector<double>> xielu_numbers(const Gguf& gguf, const std::string& key, std::size_t layers) {
  std::vector<double> numbers;
  if (gguf.metadata.is_list(key)) {
    TRY(numbers, gguf.metadata.numbers(key));
  } else {
    TRY(const auto one, gguf.metadata.number(key));
    if (one) numbers.assign(layers, *one);
  }
  if (numbers.size() != layers)
    return field_failure(key, ErrorCode::corrupt, "{}: {} has {} items, there are {} layers",
                         gguf.metadata.what(), key, numbers.size(), layers);
  if (std::ranges::all_of(numbers, [](double one) { return std::isfinite(one); })) return numbers;
  return field_failure(key, ErrorCode::corrupt, "{}: {}: one is not finite", gguf.metadata.what(), key);
}

// Apertus's are metadata, under keys without the architecture's name.
Result<> set_slopes(ModelSpec& spec, const Gguf& gguf) {
  const auto is_xielu = [](const LayerSpec& layer) {
    const auto* mlp = std::get_if<Mlp>(&layer.feed_forward);
    return mlp != nullptr && mlp->activation == Activation::xielu;
  };
  if (std::ranges::none_of(spec.layers, is_xielu)) return {};
  constexpr std::pair<const char*, double> kConstants[] = {{"xielu.beta", 0.5}, {"xielu.eps", -1e-6}};
  for (const auto& [key, constant] : kConstants) {
    TRY(const std::vector<double> stored, xielu_numbers(gguf, key, spec.layers.size()));
    for (const double one : stored)
      if (std::abs(one / constant - 1) > 0.01)  // files have them in BF16
        return field_failure(key, ErrorCode::unsupported, "{}: {} has {}; only {} is supported",
                             gguf.metadata.what(), key, one, constant);
  }
  TRY(const auto above, xielu_numbers(gguf, "xielu.alpha_p", spec.layers.size()));
  TRY(const auto below, xielu_numbers(gguf, "xielu.alpha_n", spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i].mlp().slopes = {static_cast<float>(above[i]), static_cast<float>(below[i])};
  return {};
}

// That the file's router scores experts as the family does.
Result<> check_router(const ModelSpec& spec, const Gguf& gguf, std::string_view architecture) {
  constexpr double kSoftmax = 1, kSigmoid = 2, kSqrtSoftplus = 4;  // another one: softmax over those chosen
  const std::string key = fmt::format("{}.expert_gating_func", architecture);
  TRY(const auto stored, gguf.metadata.number(key));
  for (const LayerSpec& layer : spec.layers) {
    const auto* experts = std::get_if<Experts>(&layer.feed_forward);
    if (experts == nullptr || stored.value_or(0) == 0) continue;
    const double own = experts->router.scores == RouterScores::sigmoid         ? kSigmoid
                       : experts->router.scores == RouterScores::sqrt_softplus ? kSqrtSoftplus
                                                                               : kSoftmax;
    const bool of_chosen = *stored != kSigmoid && *stored != kSqrtSoftplus;
    if (*stored == own || (own == kSoftmax && of_chosen && experts->router.renormalise)) continue;
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
  TRY_VOID(set_head(spec, gguf, architecture->name));
  TRY_VOID(set_slopes(spec, gguf));
  adapt(spec, gguf, architecture->interleaved);
  TRY(const auto predictors,
      gguf.metadata.count(fmt::format("{}.nextn_predict_layers", architecture->name), kGgufLayersMax));
  for (std::int64_t i = 0; i < predictors.value_or(0); ++i)  // they come behind the others
    spec.names.ignorable.push_back(fmt::format("blk.{}.*", std::ssize(spec.layers) + i));
  return spec;
}

}  // namespace octavo
