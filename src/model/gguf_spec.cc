#include "model/gguf_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <ranges>
#include <span>

#include "model/families/families.h"
#include "model/load_matrix.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::int64_t kPairsMax = 2048;
constexpr std::size_t kLayersMax = 1024;

struct Architecture {
  std::string_view name;    // general.architecture
  std::string_view family;  // as in config.json's "architectures"
  // The conversion has put the rows of queries and keys in the order of interleaved pairs.
  bool interleaved = false;
};
constexpr std::array kArchitectures = {
    Architecture{"arcee", "ArceeForCausalLM", true},
    Architecture{"baichuan", "BaiChuanForCausalLM", true},
    Architecture{"bloom", "BloomForCausalLM"},
    Architecture{"chatglm", "GlmForCausalLM"},
    Architecture{"cohere2", "Cohere2ForCausalLM"},
    Architecture{"command-r", "CohereForCausalLM"},
    Architecture{"ernie4_5", "Ernie4_5ForCausalLM"},
    Architecture{"exaone4", "Exaone4ForCausalLM"},
    Architecture{"falcon", "FalconForCausalLM"},
    Architecture{"gemma", "GemmaForCausalLM"},
    Architecture{"gemma2", "Gemma2ForCausalLM"},
    Architecture{"gemma3", "Gemma3ForCausalLM"},
    Architecture{"glm4", "Glm4ForCausalLM"},
    Architecture{"gpt2", "GPT2LMHeadModel"},
    Architecture{"gptneox", "GPTNeoXForCausalLM"},
    Architecture{"granite", "GraniteForCausalLM", true},
    Architecture{"hunyuan-dense", "HunYuanDenseV1ForCausalLM"},
    Architecture{"internlm2", "InternLM2ForCausalLM", true},
    Architecture{"lfm2", "Lfm2ForCausalLM"},
    Architecture{"llama", "LlamaForCausalLM", true},
    Architecture{"mpt", "MptForCausalLM"},
    Architecture{"nemotron", "NemotronForCausalLM"},
    Architecture{"olmo", "OlmoForCausalLM", true},
    Architecture{"olmo2", "Olmo2ForCausalLM"},
    Architecture{"phi2", "PhiForCausalLM"},
    Architecture{"phi3", "Phi3ForCausalLM"},
    Architecture{"qwen2", "Qwen2ForCausalLM"},
    Architecture{"qwen3", "Qwen3ForCausalLM"},
    Architecture{"seed_oss", "SeedOssForCausalLM"},
    Architecture{"smollm3", "SmolLM3ForCausalLM", true},
    Architecture{"stablelm", "StableLmForCausalLM"},
    Architecture{"starcoder", "GPTBigCodeForCausalLM"},
    Architecture{"starcoder2", "Starcoder2ForCausalLM"},
};

// What config.json calls a key's number, in the words of all families.
struct Field {
  std::string_view key;  // after the architecture's name
  std::array<std::string_view, 5> fields;
};
constexpr std::string_view kKeyHeads = "attention.head_count_kv";
constexpr std::size_t kFieldsOfShape = 7;  // the first ones
constexpr Field kFields[] = {
    {"embedding_length", {"hidden_size", "n_embd", "d_model"}},
    {"block_count", {"num_hidden_layers", "n_layer", "n_layers"}},
    {"attention.head_count", {"num_attention_heads", "n_head", "n_heads"}},
    {kKeyHeads, {"num_key_value_heads", "num_kv_heads"}},
    {"attention.key_length", {"head_dim"}},
    {"feed_forward_length", {"intermediate_size", "n_inner", "ffn_hidden_size"}},
    {"context_length",
     {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"}},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"}},
    {"shortconv.l_cache", {"conv_L_cache"}},
    {"attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}},
    {"attention.clamp_kqv", {"clip_qkv"}},
    {"rope.freq_base", {"rope_theta", "rotary_emb_base"}},
    {"rope.freq_base_swa", {"rope_local_base_freq"}},
    {"rope.scaling.original_context_length", {"original_max_position_embeddings"}},
    {"attention.sliding_window", {"sliding_window"}},
    {"attn_logit_softcapping", {"attn_logit_softcapping"}},
    {"final_logit_softcapping", {"final_logit_softcapping"}},
    {"attention.scale", {"attention_multiplier"}},
    {"embedding_scale", {"embedding_multiplier"}},
    {"residual_scale", {"residual_multiplier"}},
    {"logit_scale", {"logits_scaling", "logit_scale"}},
};

// Builds the fields of one file.
class Translation {
 public:
  Translation(const Gguf& gguf, const Architecture& architecture)
      : gguf_(gguf), architecture_(architecture) {}

  Result<Config> config() {
    fields_["architectures"] = {text_of(architecture_.family)};
    for (const Field& field : kFields) {
      if (field.key == kKeyHeads && key_heads_by_layer()) {
        TRY_VOID(add_key_heads());
        continue;
      }
      TRY(const auto value, gguf_.metadata.number(key(field.key)));
      for (const std::string_view name : field.fields)
        if (!name.empty()) set(name, value, key(field.key));
    }
    // What a file must say, or what follows from the rest: no default of the family.
    for (const Field& field : std::span(kFields).first<kFieldsOfShape>())
      for (const std::string_view name : field.fields)
        if (!name.empty() && !fields_.contains(text_of(name))) fields_[text_of(name)] = nullptr;
    if (field("sliding_window") == 0) fields_["sliding_window"] = nullptr;
    fields_["tie_word_embeddings"] = gguf_.find("output.weight") == nullptr;
    TRY_VOID(refuse_experts());
    TRY_VOID(add_vocabulary());
    TRY_VOID(add_rotation());
    TRY_VOID(add_scaling());
    TRY_VOID(add_special_cases());
    return Config::of(std::move(fields_), gguf_.metadata.what(), std::move(names_));
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_.name, name); }

  static json::string_view text_of(std::string_view text) { return {text.data(), text.size()}; }

  void set(std::string_view field, std::optional<double> value, std::string key) {
    if (value) fields_[text_of(field)] = *value;
    names_.emplace(field, std::move(key));
  }
  std::optional<double> field(std::string_view name) const {
    const auto* value = fields_.if_contains(text_of(name));
    return value != nullptr && value->is_double() ? std::optional(value->as_double()) : std::nullopt;
  }
  double head_dim() const {
    return field("head_dim")
        .value_or(field("hidden_size").value_or(0) / std::max(field("num_attention_heads").value_or(1), 1.0));
  }

  bool key_heads_by_layer() const {
    return architecture_.name == "lfm2" && gguf_.metadata.is_list(key(kKeyHeads));
  }
  // Layer by layer: short convolutions have none.
  Result<> add_key_heads() {
    const std::string name = key(kKeyHeads);
    TRY(const std::vector<double> heads, gguf_.metadata.numbers(name));
    if (heads.empty() || heads.size() > kLayersMax)
      return field_failure(name, ErrorCode::corrupt, "{}: {} has {} items, a network has 1 to {} layers",
                           gguf_.metadata.what(), name, heads.size(), kLayersMax);
    const double most = std::ranges::max(heads);
    json::array kinds;
    for (const double of_layer : heads) {
      if (of_layer != 0 && of_layer != most)
        return field_failure(name, ErrorCode::unsupported, "{}: {} differs from layer to layer",
                             gguf_.metadata.what(), name);
      kinds.emplace_back(of_layer == 0 ? "conv" : "full_attention");
    }
    fields_["layer_types"] = std::move(kinds);
    set("num_key_value_heads", most, name);
    return {};
  }

  Result<> refuse_experts() {
    TRY(const auto experts, gguf_.metadata.number(key("expert_count")));
    if (experts.value_or(0) == 0) return {};
    return field_failure("expert_count", ErrorCode::unsupported,
                         "{}: {} is {}: mixtures of experts are not supported", gguf_.metadata.what(),
                         key("expert_count"), *experts);
  }

  Result<> add_vocabulary() {
    const StoredTensor* embedding = gguf_.find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2)
      return failure(ErrorCode::corrupt, "{}: token_embd.weight is not there, or no matrix",
                     gguf_.metadata.what());
    set("vocab_size", static_cast<double>(embedding->shape[0]), "the rows of token_embd.weight");
    return {};
  }

  // The share of a head that turns.
  Result<> add_rotation() {
    TRY(const auto turning, gguf_.metadata.number(key("rope.dimension_count")));
    if (!turning || !(head_dim() > 0)) return {};
    double share = *turning / head_dim();
    // A little more where it is rounded: a family takes the whole part of share * head_dim.
    if (share < 1) share = std::nextafter(share, 1.0);
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rotary_share"})
      set(name, share, key("rope.dimension_count"));
    return {};
  }

  Result<> add_scaling() {
    TRY(const auto type, gguf_.metadata.text(key("rope.scaling.type")));
    TRY(const auto factor, gguf_.metadata.number(key("rope.scaling.factor")));
    TRY(const auto attention, gguf_.metadata.number(key("rope.scaling.attn_factor")));
    json::object scaling;
    if (gguf_.find("rope_factors_long.weight") != nullptr) {
      TRY(scaling["long_factor"], divisors("rope_factors_long.weight"));
      TRY(scaling["short_factor"], divisors("rope_factors_short.weight"));
    } else if (gguf_.find("rope_freqs.weight") != nullptr) {
      TRY(scaling["long_factor"], divisors("rope_freqs.weight"));
      scaling["short_factor"] = scaling["long_factor"];
    }
    if (!scaling.empty()) {
      scaling["rope_type"] = "longrope";
      scaling["attention_factor"] = attention.value_or(1);
    } else if (type.value_or("none") == "linear") {
      scaling = {{"rope_type", "linear"}, {"factor", factor.value_or(1)}};
    } else if (type.value_or("none") == "yarn") {
      TRY(const auto fast, gguf_.metadata.number(key("rope.scaling.yarn_beta_fast")));
      TRY(const auto slow, gguf_.metadata.number(key("rope.scaling.yarn_beta_slow")));
      const double stretch = std::max(factor.value_or(1), 1.0);
      scaling = {{"rope_type", "yarn"},
                 {"factor", factor.value_or(1)},
                 {"beta_fast", fast.value_or(32)},
                 {"beta_slow", slow.value_or(1)},
                 {"attention_factor", attention.value_or(1) * (1 + 0.1 * std::log(stretch))}};
    } else if (type.value_or("none") != "none") {
      return field_failure("rope.scaling.type", ErrorCode::unsupported,
                           "{}: {} is \"{}\"; supported are none, linear, yarn, and factors in tensors",
                           gguf_.metadata.what(), key("rope.scaling.type"), *type);
    }
    if (!scaling.empty()) fields_["rope_scaling"] = std::move(scaling);
    return {};
  }

  // What the angles of the pairs are divided by.
  Result<json::array> divisors(std::string_view name) const {
    const StoredTensor* tensor = gguf_.find(name);
    if (tensor == nullptr || tensor->dtype != DType::f32 || tensor->shape.size() != 1)
      return failure(ErrorCode::corrupt, "{}: {} must be a vector in F32", gguf_.metadata.what(), name);
    if (tensor->shape[0] > kPairsMax)
      return failure(ErrorCode::corrupt, "{}: {} has {} numbers, a head turns in at most {} pairs",
                     gguf_.metadata.what(), name, tensor->shape[0], kPairsMax);
    json::array list;
    for (std::int64_t i = 0; i < tensor->shape[0]; ++i) list.emplace_back(double{number_at(*tensor, i)});
    return list;
  }

  // What the metadata does not say, or not in one number.
  Result<> add_special_cases() {
    const std::string_view name = architecture_.name;
    if (name == "llama" && field("sliding_window"))
      fields_["architectures"] = boost::json::array{"MistralForCausalLM"};
    // The 13B model has ALiBi and the 7B model turns: told apart as llama.cpp does.
    if (name == "baichuan" && field("num_hidden_layers") == 40)
      fields_["architectures"] = boost::json::array{"BaichuanForCausalLM"};
    if (name == "gptneox" || name == "stablelm") {
      TRY(const auto parallel, gguf_.metadata.boolean(key("use_parallel_residual")));
      if (parallel) fields_["use_parallel_residual"] = *parallel;
    }
    if (name == "lfm2") {
      fields_["block_auto_adjust_ff_dim"] = false;  // the file says what was adjusted
      fields_["conv_bias"] = gguf_.find("blk.0.shortconv.conv.bias") != nullptr;
    }
    if (name == "gemma2" || name == "gemma3") {
      // The 27B models alone scale their scores by another size than the head's.
      const bool largest = field("num_hidden_layers") == (name == "gemma2" ? 46 : 62);
      fields_["query_pre_attn_scalar"] =
          largest ? field("hidden_size").value_or(0) / field("num_attention_heads").value_or(1) : head_dim();
    }
    for (const char* field : {"use_qk_norm", "qk_layernorm"})  // of Command R and StableLM
      fields_[field] = gguf_.find("blk.0.attn_q_norm.weight") != nullptr;
    if (name == "falcon") {
      const bool two_norms = gguf_.find("blk.0.attn_norm_2.weight") != nullptr;
      fields_["new_decoder_architecture"] = two_norms || field("num_kv_heads").value_or(1) > 1;
      fields_["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
    }
    if (name == "starcoder") fields_["multi_query"] = field("num_kv_heads").value_or(1) == 1;
    if (name == "exaone4" && !field("sliding_window")) fields_["sliding_window"] = nullptr;
    if (name == "mpt") {
      TRY(const auto most, gguf_.metadata.number(key("attention.max_alibi_bias")));
      json::object attention{{"alibi", most.value_or(8) > 0}, {"alibi_bias_max", most.value_or(8)}};
      if (const auto clip = field("clip_qkv")) attention["clip_qkv"] = *clip;
      fields_["attn_config"] = std::move(attention);
    }
    // Every how many layers one sees everything; or, layer by layer, whether it has a window.
    const std::string pattern = key("attention.sliding_window_pattern");
    if (gguf_.metadata.is_list(pattern)) {
      TRY(const std::vector<double> sliding, gguf_.metadata.numbers(pattern));
      if (sliding.size() > kLayersMax)
        return field_failure(pattern, ErrorCode::corrupt,
                             "{}: {} has {} items, a network has at most {} layers", gguf_.metadata.what(),
                             pattern, sliding.size(), kLayersMax);
      json::array types;
      for (const double slides : sliding)
        types.emplace_back(slides != 0 ? "sliding_attention" : "full_attention");
      fields_["layer_types"] = std::move(types);
    } else {
      TRY(const auto period, gguf_.metadata.number(pattern));
      set("sliding_window_pattern", period, pattern);
    }
    return {};
  }

  const Gguf& gguf_;
  const Architecture& architecture_;
  json::object fields_;
  Config::Names names_;
};

// Which tensors there are says what else the network has.
void adapt(ModelSpec& spec, const Gguf& gguf, bool interleaved) {
  const auto has = [&](std::string_view name) { return gguf.find(name) != nullptr; };
  const bool fused = has("blk.0.attn_qkv.weight");
  for (LayerSpec& layer : spec.layers) {
    if (auto* attention = std::get_if<Attention>(&layer.mixer)) {
      attention->qkv_bias = has(fused ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias");
      attention->out_bias = has("blk.0.attn_output.bias");
      attention->qk_norm_spec.weight_offset = 0;
    }
    layer.mlp().up_bias = has("blk.0.ffn_up.bias");
    layer.mlp().down_bias = has("blk.0.ffn_down.bias");
    for (NormSpec* norm : {&layer.pre_norm, &layer.post_norm}) norm->weight_offset = 0;
  }
  spec.final_norm.weight_offset = 0;
  spec.logits_bias = has("output.bias");
  spec.embed_scale_rounds = false;  // llama.cpp, whose files these are, keeps it in single precision
  for (RopeSpec& rope : spec.ropes) rope.interleaved = rope.interleaved || interleaved;
  // Falcon's norm of attention came later, and Seed-OSS calls its second one by its place.
  const auto* mlp_norm = has("blk.0.attn_norm_2.weight") ? "attn_norm"
                         : has("blk.0.ffn_norm.weight")  ? "ffn_norm"
                                                         : "post_attention_norm";
  const auto list = [](auto... names) { return std::vector<std::string>{names...}; };
  spec.names = {
      .prefixes = {""},
      .lm_head = "output",
      .embedding = "token_embd",
      .positions = "position_embd",
      .embedding_norm = "token_embd_norm",
      .final_norm = has("output_norm.weight") ? "output_norm" : "token_embd_norm",  // the second: LFM2
      .layers = "blk.",
      .attention_norm = has("blk.0.attn_norm_2.weight") ? "attn_norm_2" : "attn_norm",
      .attention_post_norm = "post_attention_norm",
      .mlp_norm = mlp_norm,
      .mlp_post_norm = "post_ffw_norm",
      .q_norm = "attn_q_norm",
      .k_norm = "attn_k_norm",
      .qkv = fused ? list("attn_qkv") : list("attn_q", "attn_k", "attn_v"),
      .out = "attn_output",
      .up = has("blk.0.ffn_gate.weight") ? list("ffn_gate", "ffn_up") : list("ffn_up"),
      .down = "ffn_down",
      .conv_in = "shortconv.in_proj",
      .conv = "shortconv.conv",
      .conv_out = "shortconv.out_proj",
      .ignorable = {"rope_freqs.weight", "rope_factors_*", "*.attn_rot_embd.weight"},
  };
}

}  // namespace

Result<ModelSpec> gguf_spec(const Gguf& gguf) {
  TRY(const auto name, gguf.metadata.text("general.architecture"));
  const auto* architecture = std::ranges::find(kArchitectures, name.value_or(""), &Architecture::name);
  if (architecture == kArchitectures.end())
    return field_failure("general.architecture", ErrorCode::unsupported,
                         "{}: general.architecture is \"{}\"; supported are {}", gguf.metadata.what(),
                         name.value_or(""),
                         fmt::join(kArchitectures | std::views::transform(&Architecture::name), ", "));
  TRY(const Config config, Translation(gguf, *architecture).config());
  TRY(ModelSpec spec, describe(config));
  adapt(spec, gguf, architecture->interleaved);
  return spec;
}

}  // namespace octavo
