#include "model/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <map>
#include <numbers>
#include <span>

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::int64_t kPairsMax = 2048;

// What config.json calls a key's number, in the words of all families.
struct Field {
  std::string_view key;  // after the architecture's name
  std::array<std::string_view, 6> fields;
};
constexpr std::string_view kHeads = "attention.head_count";
constexpr std::string_view kKeyHeads = "attention.head_count_kv";
constexpr std::string_view kHidden = "feed_forward_length";
constexpr std::size_t kFieldsOfShape = 7;  // the first ones
constexpr Field kFields[] = {
    {"embedding_length", {"hidden_size", "n_embd", "d_model"}},
    {"block_count", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
    {kHeads, {"num_attention_heads", "n_head", "n_heads"}},
    {kKeyHeads, {"num_key_value_heads", "num_kv_heads"}},
    {"attention.key_length", {"head_dim"}},
    {kHidden, {"intermediate_size", "n_inner", "ffn_hidden_size"}},
    {"context_length",
     {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"}},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"}},
    {"attention.shared_kv_layers", {"num_kv_shared_layers"}},
    {"embedding_length_per_layer_input", {"hidden_size_per_layer_input"}},
    {"altup.num_inputs", {"altup_num_inputs"}},
    {"altup.active_idx", {"altup_active_idx"}},
    {"attention.q_lora_rank", {"q_lora_rank"}},
    {"attention.kv_lora_rank", {"kv_lora_rank"}},
    {"shortconv.l_cache", {"conv_L_cache"}},
    {"ssm.conv_kernel", {"linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"}},
    {"ssm.state_size", {"linear_key_head_dim", "mamba_d_state", "state_size", "ssm_state_size"}},
    {"ssm.group_count", {"linear_num_key_heads", "mamba_n_groups", "n_groups"}},
    {"ssm.time_step_rank",
     {"linear_num_value_heads", "mamba_n_heads", "mamba_num_heads", "num_heads", "time_step_rank",
      "mamba_dt_rank"}},
    {"ssm.inner_size", {"mamba_d_ssm"}},
    {"full_attention_interval", {"full_attention_interval"}},
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
    {"expert_count", {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}},
    {"expert_used_count", {"num_experts_per_tok", "moe_k", "moe_topk"}},
    {"expert_feed_forward_length", {"moe_intermediate_size"}},
    {"expert_shared_count", {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}},
    {"expert_shared_feed_forward_length",
     {"shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"}},
    {"moe_latent_size", {"moe_latent_size"}},
    {"expert_group_count", {"n_group"}},
    {"expert_group_used_count", {"topk_group"}},
    {"expert_weights_scale", {"routed_scaling_factor"}},
    {"leading_dense_block_count", {"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}},
    {"interleave_moe_layer_step", {"moe_layer_interval", "interleave_moe_layer_step"}},
};

// Builds the fields of one file.
class Translation {
 public:
  Translation(const Gguf& gguf, const GgufArchitecture& architecture)
      : gguf_(gguf), architecture_(architecture) {}

  Result<Config> config() {
    fields_["architectures"] = {text_of(architecture_.family)};
    for (const Field& field : kFields) {
      const bool of_layers = field.key == kHeads || field.key == kKeyHeads || field.key == kHidden;
      if (of_layers && has_lists() && gguf_.metadata.is_list(key(field.key))) {
        TRY_VOID(add_list(field));
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
    TRY_VOID(add_experts());
    TRY_VOID(add_vocabulary());
    TRY_VOID(add_rotation());
    TRY_VOID(add_scaling());
    TRY_VOID(add_special_cases());
    if (const StoredTensor* types = gguf_.find("token_types.weight");
        types != nullptr && types->shape.size() == 2)
      set("type_vocab_size", static_cast<double>(types->shape[0]), "the rows of token_types.weight");
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

  // Whether its attention is latent.
  bool is_latent() const {
    const std::string_view name = architecture_.name;
    return name == "deepseek2" || name == "kimi-linear" || name == "minicpm3" || name == "mistral4" ||
           is_sparse();
  }
  bool is_sparse() const { return architecture_.name == "glm-dsa" || architecture_.name == "deepseek32"; }

  // Whether layers may differ in their numbers of heads, and in their widths.
  bool has_lists() const {
    constexpr std::string_view kNames[] = {"deci",  "gemma3n",     "gemma4",         "granitehybrid",
                                           "jamba", "kimi-linear", "lfm2",           "lfm2moe",
                                           "mimo2", "nemotron_h",  "nemotron_h_moe", "step35"};
    return std::ranges::find(kNames, architecture_.name) != std::end(kNames);
  }
  // The greatest number is the field's.
  Result<> add_list(const Field& field) {
    const std::string name = key(field.key);
    TRY(const std::vector<double> items, layer_numbers(name));
    for (const std::string_view named : field.fields)
      if (!named.empty()) set(named, std::ranges::max(items), name);
    lists_.emplace(field.key, items);
    return {};
  }
  // The number of a layer, or of all layers.
  std::optional<double> of_layer(std::string_view key, std::size_t layer, std::string_view name) const {
    const auto list = lists_.find(key);
    return list != lists_.end() && layer < list->second.size() ? list->second[layer] : field(name);
  }

  Result<std::vector<double>> layer_numbers(const std::string& name) const {
    TRY(std::vector<double> items, gguf_.metadata.numbers(name));
    if (items.empty() || items.size() > kGgufLayersMax)
      return field_failure(name, ErrorCode::corrupt, "{}: {} has {} items, a network has 1 to {} layers",
                           gguf_.metadata.what(), name, items.size(), kGgufLayersMax);
    return items;
  }

  // The first layer that has a window, or the first that has none.
  static std::size_t first_layer(std::span<const double> slides, bool sliding) {
    const auto found = std::ranges::find_if(slides, [=](double one) { return (one != 0) == sliding; });
    return static_cast<std::size_t>(found - slides.begin());
  }

  // Short convolutions have no heads.
  Result<> add_convolutions() {
    const auto heads = lists_.find(kKeyHeads);
    if (heads == lists_.end()) return {};
    json::array kinds;
    for (const double each : heads->second) {
      if (each != 0 && each != field("num_key_value_heads"))
        return field_failure(kKeyHeads, ErrorCode::unsupported, "{}: {} differs from layer to layer",
                             gguf_.metadata.what(), key(kKeyHeads));
      kinds.emplace_back(each == 0 ? "conv" : "full_attention");
    }
    fields_["layer_types"] = std::move(kinds);
    return {};
  }

  // Of networks with Mamba mixers, in the words of their families.
  Result<> add_mamba() {
    const std::string_view name = architecture_.name;
    const auto inner = field("mamba_d_ssm");
    const auto dim = field("hidden_size"), heads = field("mamba_n_heads");
    if (inner && dim.value_or(0) > 0)
      for (const char* expand : {"mamba_expand", "expand"}) set(expand, *inner / *dim, key("ssm.inner_size"));
    if (inner && heads.value_or(0) > 0)
      for (const char* size : {"mamba_head_dim", name == "mamba2" ? "head_dim" : "mamba_d_head"})
        set(size, *inner / *heads, key("ssm.inner_size"));
    for (const char* bias : {"mamba_conv_bias", "use_conv_bias"})
      fields_[bias] = some_have("ssm_conv1d.bias");
    for (const char* bias : {"mamba_proj_bias", "use_bias"}) fields_[bias] = some_have("ssm_in.bias");
    if (const auto eps = field("rms_norm_eps")) fields_["layer_norm_epsilon"] = *eps;
    TRY(const auto normed, gguf_.metadata.boolean(key("ssm.dt_b_c_rms")));
    if (normed.value_or(false)) fields_["architectures"] = json::array{"FalconMambaForCausalLM"};
    fields_["mamba_rms_norm"] = some_have("ssm_norm.weight");
    fields_["mamba_norm_before_gate"] = false;
    if (name == "jamba") return add_periods();
    if (name == "granitehybrid") TRY_VOID(add_granite_hybrid());
    return name == "granitehybrid" || name.starts_with("nemotron_h") ? add_kinds() : Result<>{};
  }

  bool some_have(std::string_view tensor) const {
    return std::ranges::any_of(gguf_.tensors, [&](const StoredTensor& one) {
      return one.name.starts_with("blk.") && one.name.ends_with(fmt::format(".{}", tensor));
    });
  }

  // What has heads of keys is attention; of Nemotron-H's layers, what has a width is an MLP or experts.
  Result<> add_kinds() {
    TRY(const auto blocks, gguf_.metadata.count(key("block_count"), kGgufLayersMax));
    TRY(const auto predictors, gguf_.metadata.count(key("nextn_predict_layers"), kGgufLayersMax));
    const std::int64_t layers = blocks.value_or(0) - predictors.value_or(0);  // those come behind the others
    const bool halves = architecture_.name.starts_with("nemotron_h");
    json::array kinds;
    for (std::int64_t i = 0; i < layers; ++i) {
      const auto layer = static_cast<std::size_t>(i);
      const bool attention = of_layer(kKeyHeads, layer, "num_key_value_heads").value_or(0) > 0;
      const bool wide = halves && of_layer(kHidden, layer, "intermediate_size").value_or(0) > 0;
      const bool experts = gguf_.find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
      kinds.emplace_back(attention         ? "full_attention"
                         : wide && experts ? "moe"
                         : wide            ? "mlp"
                                           : "linear_attention");
    }
    fields_["layer_types"] = std::move(kinds);
    return {};
  }

  Result<> add_granite_hybrid() {
    TRY(const auto turns, gguf_.metadata.boolean(key("rope.scaling.finetuned")));
    fields_["position_embedding_type"] = turns.value_or(true) ? "rope" : "nope";
    if (!field("num_local_experts")) fields_["num_local_experts"] = 0.0;
    if (!field("shared_intermediate_size"))
      set("shared_intermediate_size", field("intermediate_size"), key(kHidden));
    return {};
  }

  // Which layers turn.
  Result<> add_granite_windows() {
    if (field("num_local_experts").value_or(0) > 0)
      fields_["architectures"] = json::array{"GraniteMoeSWAForCausalLM"};
    if (!field("shared_intermediate_size")) fields_["shared_intermediate_size"] = 0.0;
    if (!gguf_.metadata.is_list(key("attention.rope_pattern"))) return {};
    TRY(const std::vector<double> turning, layer_numbers(key("attention.rope_pattern")));
    json::array bases;
    for (const double turns : turning)
      bases.emplace_back(turns != 0 ? field("rope_theta").value_or(10000) : 0.0);
    fields_["layer_rope_theta"] = std::move(bases);
    return {};
  }

  // Files have the width of windows, to both sides together, and every how many layers has none.
  Result<> add_modernbert() {
    set("local_attention", field("sliding_window"), key("attention.sliding_window"));
    const std::string pattern = key("attention.sliding_window_pattern");
    if (!gguf_.metadata.is_list(pattern)) {
      TRY(const auto period, gguf_.metadata.number(pattern));
      set("global_attn_every_n_layers", period.value_or(3), pattern);
    }
    set("global_rope_theta", field("rope_theta"), key("rope.freq_base"));
    set("local_rope_theta", field("rope_local_base_freq").value_or(10000), key("rope.freq_base_swa"));
    TRY(const auto activation, gguf_.metadata.text(key("hidden_activation")));
    if (activation) fields_["hidden_activation"] = text_of(*activation);
    fields_["norm_bias"] = gguf_.find("output_norm.bias") != nullptr;
    return {};
  }

  // Jamba's attention is in every few layers, and so are its experts.
  Result<> add_periods() {
    const auto heads = lists_.find(kKeyHeads);
    if (heads == lists_.end()) return {};
    const auto layers = std::ssize(heads->second);
    const auto period_of = [&](std::string_view what, std::string_view prefix, auto&& there) -> Result<> {
      std::int64_t first = 0, period = layers + 1;
      while (first < layers && !there(first)) ++first;
      for (std::int64_t i = first + 1; i < layers && period > layers; ++i)
        if (there(i)) period = i - first;
      for (std::int64_t i = 0; i < layers; ++i)
        if (there(i) != (i % period == first))
          return failure(ErrorCode::unsupported, "{}: layer {}: layers with {} come in no period",
                         gguf_.metadata.what(), i, what);
      fields_[fmt::format("{}_layer_period", prefix)] = static_cast<double>(period);
      fields_[fmt::format("{}_layer_offset", prefix)] = static_cast<double>(first);
      return {};
    };
    TRY_VOID(period_of("attention", "attn",
                       [&](std::int64_t i) { return heads->second[static_cast<std::size_t>(i)] != 0; }));
    return period_of("experts", "expert", [&](std::int64_t i) {
      return gguf_.find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
    });
  }

  // Ministral 3's queries grow with the position.
  Result<> add_mistral3() {
    const auto* stretched = fields_.if_contains("rope_scaling");
    if (stretched == nullptr || !stretched->is_object()) return {};
    json::object rope = stretched->as_object();
    TRY(const auto growth, gguf_.metadata.number(key("rope.scaling.yarn_log_multiplier")));
    TRY(const auto beta, gguf_.metadata.number(key("attention.temperature_scale")));
    if (growth.value_or(0) != 0) {
      rope.erase("attention_factor");
      rope["mscale"] = 1.0;
      rope["mscale_all_dim"] = *growth;
    }
    if (const auto length = field("original_max_position_embeddings"))
      rope["original_max_position_embeddings"] = *length;
    if (beta.value_or(0) != 0) rope["llama_4_scaling_beta"] = *beta;
    fields_["rope_parameters"] = std::move(rope);
    fields_["rope_scaling"] = nullptr;
    return {};
  }

  // Trinity's words. Files do not say that embeddings are scaled and that every fourth layer sees everything.
  void add_afmoe() {
    const auto* normed = fields_.if_contains("norm_topk_prob");
    fields_["route_norm"] = normed != nullptr && normed->is_bool() && normed->as_bool();
    set("route_scale", field("routed_scaling_factor").value_or(1), key("expert_weights_scale"));
    fields_["mup_enabled"] = true;
    fields_["global_attn_every_n_layers"] = 4;
  }

  // Files of MiniCPM3, and older ones of MiniCPM, do not say what both have been published with.
  void add_minicpm() {
    const double layers = field("num_hidden_layers").value_or(0), dim = field("hidden_size").value_or(0);
    const auto embedding = field("embedding_multiplier"), residual = field("residual_multiplier"),
               logits = field("logits_scaling");
    set("scale_emb", embedding.value_or(12), key("embedding_scale"));
    set("scale_depth", residual ? *residual * std::sqrt(layers) : 1.4, key("residual_scale"));
    set("dim_model_base", logits.value_or(0) != 0 ? dim / *logits : 256.0, key("logit_scale"));
  }

  // Which of softmax and sigmoid scores experts; sigmoid where a file does not say it.
  Result<> add_scores(std::string_view named) {
    constexpr double kSoftmax = 1;
    TRY(const auto scores, gguf_.metadata.number(key("expert_gating_func")));
    fields_[text_of(named)] = scores == kSoftmax ? "softmax" : "sigmoid";
    return {};
  }

  // Experts are as wide as the field says that is dense layers' elsewhere.
  Result<> add_cohere2_moe() {
    set("prefix_dense_intermediate_size", field("intermediate_size"), key(kHidden));
    set("intermediate_size", field("moe_intermediate_size"), key("expert_feed_forward_length"));
    return add_scores("expert_selection_fn");
  }

  // Files say how wide the shared experts are together, and have what each layer has of its experts.
  Result<> add_hunyuan_v3() {
    const auto each = field("moe_intermediate_size"), shared = field("shared_intermediate_size");
    if (each.value_or(0) > 0 && shared)
      set("num_shared_experts", *shared / *each, key("expert_shared_feed_forward_length"));
    if (const auto* normed = fields_.if_contains("norm_topk_prob")) fields_["route_norm"] = *normed;
    set("router_scaling_factor", field("routed_scaling_factor").value_or(1), key("expert_weights_scale"));
    TRY_VOID(add_expert_layers());
    return {};
  }

  // Layers with a router have experts.
  Result<> add_expert_layers() {
    TRY(const auto layers, gguf_.metadata.count(key("block_count"), kGgufLayersMax));
    const double own = field("num_hidden_layers").value_or(0);  // without those of multi-token prediction
    json::array kinds;
    for (std::int64_t i = 0; i < layers.value_or(0) && static_cast<double>(i) < own; ++i)
      kinds.emplace_back(gguf_.find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr ? "sparse"
                                                                                             : "dense");
    fields_["mlp_layer_types"] = std::move(kinds);
    return {};
  }

  // Only layers that see everything are stretched.
  void set_ropes(json::object whole, json::object sliding) {
    if (const auto* stretched = fields_.if_contains("rope_scaling"); stretched && stretched->is_object())
      whole.insert(stretched->as_object().begin(), stretched->as_object().end());
    const auto theta = field("rope_theta"), local = field("rope_local_base_freq");
    if (theta) whole["rope_theta"] = *theta;
    if (local || theta) sliding["rope_theta"] = local ? *local : *theta;
    for (json::object* rope : {&whole, &sliding}) rope->emplace("rope_type", "default");
    fields_["rope_scaling"] = nullptr;
    fields_["rope_parameters"] =
        json::object{{"full_attention", std::move(whole)}, {"sliding_attention", std::move(sliding)}};
  }

  // DBRX has half of its fields in objects.
  void add_dbrx() {
    const auto stored = [&](std::string_view name) {
      const auto* value = fields_.if_contains(text_of(name));
      return value != nullptr ? *value : json::value();
    };
    const auto heads = field("num_key_value_heads");
    fields_["attn_config"] = {{"kv_n_heads", heads ? json::value(*heads) : stored("n_heads")},
                              {"clip_qkv", stored("clip_qkv")}};
    fields_["ffn_config"] = {{"moe_num_experts", stored("moe_num_experts")},
                             {"moe_top_k", stored("moe_k")},
                             {"ffn_hidden_size", stored("ffn_hidden_size")}};
  }

  // Layers without heads have no attention, those without a width no MLP.
  Result<> add_deci() {
    TRY(const auto layers, gguf_.metadata.count(key("block_count"), kGgufLayersMax));
    json::array blocks;
    for (std::size_t i = 0; std::cmp_less(i, layers.value_or(0)); ++i) {
      const double heads = of_layer(kHeads, i, "num_attention_heads").value_or(0);
      const double key_heads = of_layer(kKeyHeads, i, "num_key_value_heads").value_or(heads);
      const double width = of_layer(kHidden, i, "intermediate_size").value_or(0);
      json::object attention{{"n_heads_in_group", heads / key_heads}}, mlp{{"intermediate_size", width}};
      if (key_heads == 0) attention = {{"replace_with_linear", true}};
      if (heads == 0) attention = {{"no_op", true}};
      if (width == 0) mlp = {{"no_op", true}};
      blocks.push_back({{"attention", std::move(attention)}, {"ffn", std::move(mlp)}});
    }
    fields_["block_configs"] = std::move(blocks);
    return {};
  }

  // Layers with windows have key heads of their own. Weights of those chosen are always divided by their sum.
  Result<> add_mimo2() {
    TRY(const std::vector<double> slides, layer_numbers(key("attention.sliding_window_pattern")));
    TRY(const auto value_dim, gguf_.metadata.number(key("attention.value_length")));
    TRY(const auto scale, gguf_.metadata.number(key("attention.value_scale")));
    const auto key_heads = [&](bool sliding) {
      return of_layer(kKeyHeads, first_layer(slides, sliding), "num_key_value_heads");
    };
    const auto full = key_heads(false), local = key_heads(true);
    set("num_key_value_heads", full, key(kKeyHeads));
    set("swa_num_key_value_heads", local, key(kKeyHeads));
    set("v_head_dim", value_dim.value_or(head_dim()), key("attention.value_length"));
    set("attention_value_scale", scale.value_or(1), key("attention.value_scale"));
    fields_["add_swa_attention_sink_bias"] = some_have("attn_sinks.weight");
    set_ropes({}, {});
    return add_expert_layers();
  }

  // Layers with windows have heads of their own, and turn as a whole where the others turn by half of that.
  Result<> add_step35() {
    TRY(const std::vector<double> slides, layer_numbers(key("attention.sliding_window_pattern")));
    TRY(const auto turning, gguf_.metadata.number(key("rope.dimension_count")));
    TRY(const auto local_turning, gguf_.metadata.number(key("rope.dimension_count_swa")));
    const std::size_t full = first_layer(slides, false), local = first_layer(slides, true);
    json::object other;
    for (const auto& [stored, name, others_name] :
         {std::tuple(kHeads, "num_attention_heads", "num_attention_heads"),
          std::tuple(kKeyHeads, "num_key_value_heads", "num_attention_groups")}) {
      if (const auto heads = of_layer(stored, local, name)) other[others_name] = *heads;
      set(name, of_layer(stored, full, name), key(stored));
    }
    fields_["attention_other_setting"] = std::move(other);
    fields_["use_head_wise_attn_gate"] = some_have("attn_gate.weight");
    set("share_expert_dim", field("shared_expert_intermediate_size"),
        key("expert_shared_feed_forward_length"));
    set("moe_router_scaling_factor", field("routed_scaling_factor").value_or(1), key("expert_weights_scale"));
    if (const auto* normed = fields_.if_contains("norm_topk_prob")) fields_["norm_expert_weight"] = *normed;
    for (const auto& [stored, name] : {std::pair("swiglu_clamp_exp", "swiglu_limits"),
                                       std::pair("swiglu_clamp_shexp", "swiglu_limits_shared")})
      if (gguf_.metadata.is_list(key(stored))) {
        TRY(const std::vector<double> limits, layer_numbers(key(stored)));
        fields_[name] = json::array(limits.begin(), limits.end());
      }
    const double all = turning.value_or(head_dim());
    cut_divisors(all / 4);
    set_ropes({{"partial_rotary_factor", share_of(all / 2)}},
              {{"partial_rotary_factor", share_of(local_turning.value_or(all))}});
    return add_expert_layers();
  }

  // Tensors of divisors may be as long as the longest layers' pairs.
  void cut_divisors(double pairs) {
    auto* scaling = fields_.if_contains("rope_scaling");
    if (scaling == nullptr || !scaling->is_object() || !(pairs >= 1 && pairs <= kPairsMax)) return;
    for (const char* name : {"long_factor", "short_factor"})
      if (auto* list = scaling->as_object().if_contains(name); list != nullptr && list->is_array())
        if (const auto count = static_cast<std::size_t>(pairs); list->as_array().size() > count)
          list->as_array().resize(count);
  }

  // The words of T5, whose layers are numbered in each half.
  Result<> add_t5() {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"attention.head_count", "num_heads"},
        {"attention.key_length", "d_kv"},
        {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
        {"attention.relative_buckets_count", "relative_attention_num_buckets"},
        {"decoder_block_count", "num_decoder_layers"},
        {"decoder_start_token_id", "decoder_start_token_id"},
        {"feed_forward_length", "d_ff"}};
    for (const auto& [stored, wanted] : kNames) {
      TRY(const auto number, gguf_.metadata.number(key(stored)));
      set(wanted, number, key(stored));
    }
    const bool gated = gguf_.find("enc.blk.0.ffn_gate.weight") != nullptr;
    fields_["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
    return {};
  }

  // Its windows' base has a name of its own.
  void add_plamo3() {
    const auto local = field("rope_local_base_freq");
    set("rope_local_theta", local ? local : field("rope_theta"), key("rope.freq_base_swa"));
  }

  Result<> add_rwkv7() {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"wkv.head_size", "head_dim"},
        {"attention.decay_lora_rank", "decay_low_rank_dim"},
        {"attention.iclr_lora_rank", "a_low_rank_dim"},
        {"attention.value_residual_mix_lora_rank", "v_low_rank_dim"},
        {"attention.gate_lora_rank", "gate_low_rank_dim"}};
    for (const auto& [stored, wanted] : kNames) {
      TRY(const auto number, gguf_.metadata.number(key(stored)));
      set(wanted, number, key(stored));
    }
    fields_["fuse_norm"] = false;
    return {};
  }

  // Of Gemma 3n and 4.
  Result<> add_layer_inputs() {
    if (const StoredTensor* table = gguf_.find("per_layer_token_embd.weight"); table != nullptr)
      set("vocab_size_per_layer_input", static_cast<double>(table->shape[0]),
          "the rows of per_layer_token_embd.weight");
    if (!field("hidden_size_per_layer_input")) fields_["hidden_size_per_layer_input"] = 0.0;
    if (!field("num_kv_shared_layers")) fields_["num_kv_shared_layers"] = 0.0;
    return {};
  }

  Result<> add_gemma3n() {
    TRY_VOID(add_layer_inputs());
    if (const auto widths = lists_.find(kHidden); widths != lists_.end())
      fields_["intermediate_size"] = json::array(widths->second.begin(), widths->second.end());
    fields_["altup_correct_scale"] = gguf_.find("blk.0.altup_correct_scale.weight") != nullptr;
    if (const StoredTensor* left = gguf_.find("blk.0.laurel_l.weight"); left != nullptr)
      set("laurel_rank", static_cast<double>(left->shape[0]), "the rows of blk.0.laurel_l.weight");
    // How many standard deviations above the mean a gate must be to count: as the share of those that are
    // not.
    const std::string sparsity = key("activation_sparsity_scale");
    if (!gguf_.metadata.is_list(sparsity)) return {};
    TRY(const std::vector<double> deviations, layer_numbers(sparsity));
    json::array shares;
    for (const double each : deviations) shares.emplace_back(0.5 * std::erfc(-each / std::numbers::sqrt2));
    fields_["activation_sparsity_pattern"] = std::move(shares);
    return {};
  }

  // Layers that see everything have heads of their own, of which a part turns.
  Result<> add_gemma4() {
    TRY_VOID(add_layer_inputs());
    TRY(const auto full_dim, gguf_.metadata.number(key("attention.key_length")));
    TRY(const auto dim, gguf_.metadata.number(key("attention.key_length_swa")));
    TRY(const auto turning, gguf_.metadata.number(key("rope.dimension_count_swa")));
    TRY(const std::vector<double> slides, layer_numbers(key("attention.sliding_window_pattern")));
    const std::size_t full = first_layer(slides, false);
    if (turning && turning != dim)
      return field_failure("rope.dimension_count_swa", ErrorCode::unsupported,
                           "{}: {} is {}; heads of windows turn as a whole here", gguf_.metadata.what(),
                           key("rope.dimension_count_swa"), *turning);
    json::object own;
    if (full_dim) own["head_dim"] = *full_dim;
    if (const auto heads = of_layer(kKeyHeads, full, "num_key_value_heads"))
      own["num_key_value_heads"] = *heads;
    fields_["per_layer_config"] = json::object{{fmt::format("{}", full), std::move(own)}};
    set("head_dim", dim, key("attention.key_length_swa"));
    set("num_key_value_heads", of_layer(kKeyHeads, first_layer(slides, true), "num_key_value_heads"),
        key(kKeyHeads));
    fields_["attention_k_eq_v"] = gguf_.find(fmt::format("blk.{}.attn_v.weight", full)) == nullptr;
    if (const auto widths = lists_.find(kHidden); widths != lists_.end()) {
      const auto [least, most] = std::ranges::minmax(widths->second);
      fields_["intermediate_size"] = least;
      fields_["use_double_wide_mlp"] = most == 2 * least;
    }
    fields_["enable_moe_block"] = field("num_experts").value_or(0) > 0;
    set("top_k_experts", field("num_experts_per_tok"), key("expert_used_count"));
    return add_gemma4_rotation();
  }

  // Pairs whose angles are divided by a huge number do not turn.
  Result<> add_gemma4_rotation() {
    constexpr double kHuge = 1e20;
    fields_["rope_scaling"] = nullptr;
    json::object turns{{"rope_type", "proportional"}}, slides{{"rope_type", "default"}};
    if (gguf_.find("rope_freqs.weight") != nullptr) {
      TRY(const json::array by, divisors("rope_freqs.weight"));
      double turning = 0;
      for (std::size_t i = 0; i < by.size(); ++i) {
        const double one = by[i].as_double();
        if (one == 1 && turning == static_cast<double>(i))
          ++turning;
        else if (one < kHuge)
          return failure(
              ErrorCode::unsupported,
              "{}: rope_freqs.weight divides the angles of pair {} by {}; here the first pairs turn as "
              "they are, and the others not at all",
              gguf_.metadata.what(), i, one);
      }
      turns["partial_rotary_factor"] = turning / static_cast<double>(by.size());
    }
    if (const auto theta = field("rope_theta")) turns["rope_theta"] = *theta;
    slides["rope_theta"] = field("rope_local_base_freq").value_or(10000.0);
    fields_["rope_parameters"] =
        json::object{{"full_attention", std::move(turns)}, {"sliding_attention", std::move(slides)}};
    return {};
  }

  // Where a file does not say whether the weights of those chosen are divided by their sum, llama.cpp does
  // what the published models of the family want.
  Result<> add_experts() {
    TRY(const auto normed, gguf_.metadata.boolean(key("expert_weights_norm")));
    const std::string_view name = architecture_.name;
    const bool always = name == "qwen3moe" || name == "qwen3vlmoe" || name == "qwen3next" ||
                        name == "lfm2moe" || name == "mellum" || name == "kimi-linear" || name == "mimo2";
    if (normed || always || is_latent()) fields_["norm_topk_prob"] = normed.value_or(always);
    TRY(const auto predictors, gguf_.metadata.count(key("nextn_predict_layers"), kGgufLayersMax));
    fields_["num_nextn_predict_layers"] = predictors.value_or(0);
    const auto layers = field("num_hidden_layers");
    // DeepSeek-V4's files say how many it has, and count them as layers only where they are there.
    if (name == "deepseek4" && !some_have("nextn.eh_proj.weight")) return {};
    if (predictors && layers) fields_["num_hidden_layers"] = *layers - static_cast<double>(*predictors);
    return {};
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
    if (!turning || !(head_dim() > 0) || is_latent() || architecture_.name == "deepseek4") return {};
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rotary_share"})
      set(name, share_of(*turning), key("rope.dimension_count"));
    return {};
  }

  // Of so many elements that turn. A little more where it is rounded: a family takes the whole part of share
  // * head_dim.
  double share_of(double turning) const {
    const double share = turning / head_dim();
    return share < 1 ? std::nextafter(share, 1.0) : share;
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
      // Latent attention's angles are as they are, and scores grow by what the file says a tenth of.
      TRY(const auto tenth, gguf_.metadata.number(key("rope.scaling.yarn_log_multiplier")));
      const bool latent = is_latent();
      scaling = {{"rope_type", "yarn"},
                 {"factor", factor.value_or(1)},
                 {"beta_fast", fast.value_or(32)},
                 {"beta_slow", slow.value_or(1)},
                 {"truncate", architecture_.name != "gpt-oss"},
                 {"attention_factor", latent ? 1.0 : attention.value_or(1) * (1 + 0.1 * std::log(stretch))}};
      if (latent) scaling["mscale_all_dim"] = 10 * tenth.value_or(0);
    } else if (type.value_or("none") != "none") {
      return field_failure("rope.scaling.type", ErrorCode::unsupported,
                           "{}: {} is \"{}\"; supported are none, linear, yarn, and factors in tensors",
                           gguf_.metadata.what(), key("rope.scaling.type"), *type);
    }
    if (!scaling.empty()) fields_["rope_scaling"] = std::move(scaling);
    fields_["rope_parameters"] = nullptr;  // no defaults of the family
    return {};
  }

  // Of latent attention. Where a file does not say how its router scores experts, llama.cpp goes by the size.
  Result<> add_latents() {
    TRY(const auto q_dim, gguf_.metadata.number(key("attention.key_length_mla")));
    TRY(const auto value_dim, gguf_.metadata.number(key("attention.value_length_mla")));
    TRY(const auto older_q_dim, gguf_.metadata.number(key("attention.key_length")));
    TRY(const auto older_value_dim, gguf_.metadata.number(key("attention.value_length")));
    TRY(const auto turning, gguf_.metadata.number(key("rope.dimension_count")));
    set("qk_rope_head_dim", turning, key("rope.dimension_count"));
    const auto whole = q_dim ? q_dim : older_q_dim;
    if (whole && turning) set("qk_nope_head_dim", *whole - *turning, key("attention.key_length_mla"));
    set("v_head_dim", value_dim ? value_dim : older_value_dim, key("attention.value_length_mla"));
    fields_["num_key_value_heads"] = nullptr;  // files say 1
    if (!field("q_lora_rank")) fields_["q_lora_rank"] = nullptr;
    if (!field("routed_scaling_factor")) fields_["routed_scaling_factor"] = 1.0;
    if (field("n_routed_experts").value_or(0) == 0) fields_["n_routed_experts"] = nullptr;
    if (is_sparse()) return add_indexer();
    if (architecture_.name == "minicpm3") return {};
    if (architecture_.name == "kimi-linear") return add_kimi_linear();
    constexpr double kSigmoid = 2;
    const double layers = field("num_hidden_layers").value_or(0);
    const bool lite_glm = (layers == 47 || layers == 48) && field("vocab_size") == 154880;
    TRY(const auto scores, gguf_.metadata.number(key("expert_gating_func")));
    // Mistral 4 and Mistral Large 3, under either name: queries that grow with the position.
    TRY(const auto growth, gguf_.metadata.number(key("attention.temperature_scale")));
    if (architecture_.name == "mistral4" || growth.value_or(0) != 0) {
      fields_["architectures"] = json::array{"Mistral4ForCausalLM"};
      fields_["rope_parameters"] = json::object{
          {"llama_4_scaling_beta", growth.value_or(0)},
          {"original_max_position_embeddings",
           field("original_max_position_embeddings").value_or(field("max_position_embeddings").value_or(0))}};
      return {};
    }
    if (scores.value_or(0) == 0 ? lite_glm : *scores == kSigmoid) return {};
    fields_["architectures"] = json::array{"DeepseekV2ForCausalLM"};
    if (field("n_group").value_or(1) > 1) fields_["topk_method"] = "group_limited_greedy";
    return {};
  }

  // What has heads of keys is latent attention.
  Result<> add_kimi_linear() {
    TRY(const auto head_dim, gguf_.metadata.number(key("kda.head_dim")));
    set("linear_head_dim", head_dim, key("kda.head_dim"));
    set("linear_num_heads", field("num_attention_heads"), key("attention.head_count"));
    return add_kinds();
  }

  Result<> add_deepseek_v4() {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"attention.output_group_count", "o_groups"},
        {"attention.output_lora_rank", "o_lora_rank"},
        {"attention.compress_rope_freq_base", "compress_rope_theta"},
        {"rope.dimension_count", "qk_rope_head_dim"},
        {"hash_layer_count", "num_hash_layers"},
        {"swiglu_clamp_exp", "swiglu_limit"},
        {"hyper_connection.count", "hc_mult"},
        {"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
        {"hyper_connection.epsilon", "hc_eps"}};
    for (const auto& [stored, wanted] : kNames) {
      TRY(const auto number, gguf_.metadata.number(key(stored)));
      set(wanted, number, key(stored));
    }
    TRY(const std::vector<double> rates, layer_numbers(key("attention.compress_ratios")));
    fields_["compress_ratios"] = json::array(rates.begin(), rates.end());
    return add_indexer();
  }

  Result<> add_indexer() {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"attention.indexer.head_count", "index_n_heads"},
        {"attention.indexer.key_length", "index_head_dim"},
        {"attention.indexer.top_k", "index_topk"}};
    for (const auto& [stored, wanted] : kNames) {
      TRY(const auto number, gguf_.metadata.number(key(stored)));
      set(wanted, number, key(stored));
    }
    return {};
  }

  // Files say nothing of chunks and of queries that grow: they are as in the published models.
  Result<> add_llama4() {
    constexpr double kMostExperts = 128;  // Maverick, whose queries and keys have no norms
    fields_["intermediate_size_mlp"] = field("intermediate_size").value_or(0);
    set("intermediate_size", field("moe_intermediate_size"), key("expert_feed_forward_length"));
    fields_["use_qk_norm"] = field("num_local_experts") != kMostExperts;
    TRY(const auto chunk, gguf_.metadata.number(key("attention.sliding_window")));
    if (chunk == 0)
      return field_failure("attention.sliding_window", ErrorCode::unsupported,
                           "{}: {} is 0; attention without chunks is not supported here",
                           gguf_.metadata.what(), key("attention.sliding_window"));
    return {};
  }

  Result<> add_delta_nets() {
    const std::string inner_key = key("ssm.inner_size");
    TRY(const auto inner, gguf_.metadata.number(inner_key));
    if (inner && field("linear_num_value_heads").value_or(0) > 0)
      set("linear_value_head_dim", *inner / *field("linear_num_value_heads"), inner_key);
    return add_recurrent_layers();
  }

  // Of MiniMax-01: one number for all of its multipliers of residuals, none of the others.
  Result<> add_minimax() {
    TRY(const auto residual, gguf_.metadata.number(key("residual_scale")));
    for (const char* half : {"full_attn", "linear_attn", "mlp"}) {
      set(fmt::format("{}_alpha_factor", half), residual.value_or(1), key("residual_scale"));
      fields_[fmt::format("{}_beta_factor", half)] = 1.0;
    }
    if (!gguf_.metadata.is_list(key("attention.recurrent_layers"))) {
      const auto interval = static_cast<std::int64_t>(field("full_attention_interval").value_or(8));
      json::array types;
      for (std::int64_t i = 1; static_cast<double>(i) <= field("num_hidden_layers").value_or(0); ++i)
        types.emplace_back(i % std::max<std::int64_t>(interval, 1) == 0 ? "full_attention"
                                                                        : "linear_attention");
      fields_["layer_types"] = std::move(types);
    }
    return add_recurrent_layers();
  }

  // Which layers have a state in place of their past.
  Result<> add_recurrent_layers() {
    const std::string layers_key = key("attention.recurrent_layers");
    if (!gguf_.metadata.is_list(layers_key)) return {};
    TRY(std::vector<double> recurrent, layer_numbers(layers_key));
    // Layers of multi-token prediction come behind the others.
    const double layers = field("num_hidden_layers").value_or(0);
    if (layers > 0 && static_cast<double>(recurrent.size()) > layers)
      recurrent.resize(static_cast<std::size_t>(layers));
    json::array types;
    for (const double one : recurrent) types.emplace_back(one != 0 ? "linear_attention" : "full_attention");
    fields_["layer_types"] = std::move(types);
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
    if (name == "llama" && field("num_local_experts").value_or(0) > 0)
      fields_["architectures"] = boost::json::array{"MixtralForCausalLM"};
    // The 13B model has ALiBi and the 7B model turns: told apart as llama.cpp does.
    if (name == "baichuan" && field("num_hidden_layers") == 40)
      fields_["architectures"] = boost::json::array{"BaichuanForCausalLM"};
    if (name == "gptneox" || name == "stablelm") {
      TRY(const auto parallel, gguf_.metadata.boolean(key("use_parallel_residual")));
      if (parallel) fields_["use_parallel_residual"] = *parallel;
    }
    if (name.starts_with("lfm2")) {
      fields_["block_auto_adjust_ff_dim"] = false;  // the file says what was adjusted
      fields_["conv_bias"] = gguf_.find("blk.0.shortconv.conv.bias") != nullptr;
      TRY_VOID(add_convolutions());
    }
    if (is_latent()) TRY_VOID(add_latents());
    if (name == "llama4") TRY_VOID(add_llama4());
    if (field("mamba_d_ssm") && !name.starts_with("qwen3")) TRY_VOID(add_mamba());
    if (name == "mistral3") TRY_VOID(add_mistral3());
    if (name == "rwkv7") TRY_VOID(add_rwkv7());
    if (name == "exaone")
      set("layer_norm_epsilon", field("rms_norm_eps"), key("attention.layer_norm_rms_epsilon"));
    if (name == "orion") set("rms_norm_eps", field("layer_norm_eps"), key("attention.layer_norm_epsilon"));
    if (name.starts_with("minicpm")) add_minicpm();
    if (name == "bailingmoe2") TRY_VOID(add_scores("score_function"));
    if (name == "cohere2moe") TRY_VOID(add_cohere2_moe());
    if (name == "hy_v3") TRY_VOID(add_hunyuan_v3());
    if (name == "mellum") set_ropes({}, {});
    if (name == "dbrx") add_dbrx();
    if (name == "deci") TRY_VOID(add_deci());
    if (name == "mimo2") TRY_VOID(add_mimo2());
    if (name == "step35") TRY_VOID(add_step35());
    if (name == "plamo3") add_plamo3();
    if (name == "t5") TRY_VOID(add_t5());
    if (name == "granite_swa") TRY_VOID(add_granite_windows());
    if (name == "minimax-01") TRY_VOID(add_minimax());
    if (name == "modern-bert") TRY_VOID(add_modernbert());
    if (name == "gemma-embedding") fields_["use_bidirectional_attention"] = true;
    if (name == "deepseek4") TRY_VOID(add_deepseek_v4());
    if (name == "afmoe") add_afmoe();
    if (name == "gemma3n") TRY_VOID(add_gemma3n());
    if (name == "gemma4") TRY_VOID(add_gemma4());
    if (name.starts_with("qwen35") || name == "qwen3next") TRY_VOID(add_delta_nets());
    if (name == "gemma2" || name == "gemma3" || name == "gemma-embedding") {
      // The 27B models alone scale their scores by another size than the head's.
      const bool largest = field("num_hidden_layers") == (name == "gemma2" ? 46 : 62);
      fields_["query_pre_attn_scalar"] =
          largest ? field("hidden_size").value_or(0) / field("num_attention_heads").value_or(1) : head_dim();
    }
    for (const char* field : {"use_qk_norm", "qk_layernorm"})  // of Command R and StableLM
      if (name != "llama4") fields_[field] = gguf_.find("blk.0.attn_q_norm.weight") != nullptr;
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
      if (sliding.size() > kGgufLayersMax)
        return field_failure(pattern, ErrorCode::corrupt,
                             "{}: {} has {} items, a network has at most {} layers", gguf_.metadata.what(),
                             pattern, sliding.size(), kGgufLayersMax);
      const double own = field("num_hidden_layers").value_or(0);  // without those of multi-token prediction
      json::array types;
      for (std::size_t i = 0; i < sliding.size() && static_cast<double>(i) < own; ++i)
        types.emplace_back(sliding[i] != 0 ? "sliding_attention" : "full_attention");
      fields_["layer_types"] = std::move(types);
    } else {
      TRY(const auto period, gguf_.metadata.number(pattern));
      set("sliding_window_pattern", period, pattern);
    }
    return {};
  }

  const Gguf& gguf_;
  const GgufArchitecture& architecture_;
  json::object fields_;
  std::map<std::string_view, std::vector<double>> lists_;  // by key: numbers of the layers
  Config::Names names_;
};

}  // namespace

Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture) {
  return Translation(gguf, architecture).config();
}

}  // namespace octavo
