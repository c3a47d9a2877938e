#include "model/params_file.h"

#include <array>
#include <boost/json/object.hpp>
#include <filesystem>
#include <utility>

#include "tensor/mapped_file.h"
#include "weights/checkpoint.h"
#include "weights/json.h"
#include "weights/weight_files.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr JsonLimits kLimits{.bytes = std::size_t{4} << 20, .depth = 16};
constexpr Config::Range kCount{1, 1 << 27};

struct Field {
  std::string_view own, params;
};

// Required fields. If one is missing, config.json's default would be wrong.
constexpr std::array kNeeded = {
    Field{"hidden_size", "dim"},
    Field{"num_hidden_layers", "n_layers"},
    Field{"num_attention_heads", "n_heads"},
    Field{"intermediate_size", "hidden_dim"},
    Field{"rms_norm_eps", "norm_eps"},
    Field{"vocab_size", "vocab_size"},
    Field{"rope_theta", "rope_theta"},
};
constexpr std::array kOptional = {
    Field{"num_key_value_heads", "n_kv_heads"},
    Field{"tie_word_embeddings", "tied_embeddings"},
    Field{"hidden_act", "activation"},
};
// Fields of `moe`.
constexpr std::array kExperts = {
    Field{"moe_layer_freq", "route_every_n"},
    Field{"first_k_dense_replace", "first_k_dense_replace"},
    Field{"num_experts_per_tok", "num_experts_per_tok"},
    Field{"moe_intermediate_size", "expert_hidden_dim"},
    Field{"routed_scaling_factor", "routed_scale"},
    Field{"n_shared_experts", "num_shared_experts"},
    Field{"n_group", "num_expert_groups"},
    Field{"topk_group", "num_expert_groups_per_tok"},
};

json::string_view field_key(std::string_view field) { return {field.data(), field.size()}; }

// Converts fields of params.json to fields of config.json.
class Translator {
 public:
  explicit Translator(json::object params)
      : fields_(params), params_(Config::of(std::move(params), "params.json", {})) {}

  Result<Config> translate() {
    for (const Field& field : kNeeded) {
      if (!params_.has(field.params))
        return invalid(field.params, "{} is missing", params_.where(field.params));
      rename(field, "");
    }
    fields_["hidden_act"] = "silu";
    for (const Field& field : kOptional) rename(field, "");
    if (!params_.has("max_position_embeddings")) {
      fields_["max_position_embeddings"] = 128'000;
      rename({"max_position_embeddings", "max_seq_len"}, "");
    }
    if (!params_.has("n_kv_heads")) fields_["num_key_value_heads"] = fields_["num_attention_heads"];
    fields_["model_type"] = "transformer";
    TRY_VOID(windows());
    TRY_VOID(rotation());
    TRY_VOID(experts());
    TRY_VOID(quantization());
    TRY(const std::string_view architecture, architecture_of());
    fields_["architectures"] = json::array{field_key(architecture)};
    if (params_.has("vision_encoder")) {
      fields_["text_architecture"] = field_key(architecture);
      fields_["architectures"] = json::array{"PixtralForConditionalGeneration"};
    }
    return Config::of(std::move(fields_), "params.json", std::move(names_));
  }

 private:
  // `path` is the object that contains the field; "" is the file.
  void rename(const Field& field, std::string_view path) {
    const json::value* value = fields_.if_contains(field_key(field.params));
    if (!path.empty()) value = fields_[field_key(path)].as_object().if_contains(field_key(field.params));
    if (value == nullptr || value->is_null()) return;
    json::value copy = *value;
    fields_[field_key(field.own)] = std::move(copy);
    names_.insert_or_assign(std::string(field.own), path.empty() ? std::string(field.params)
                                                                 : fmt::format("{}.{}", path, field.params));
  }

  // Converts sliding_window: a number for all layers, or a list that repeats. null means full attention.
  Result<> windows() {
    if (!params_.is_list("sliding_window")) {
      if (!params_.has("sliding_window")) fields_["sliding_window"] = nullptr;
      return {};
    }
    const json::array list = fields_["sliding_window"].as_array();
    TRY(const int layers, params_.integer("n_layers", {1, 1024}));
    json::value window;
    json::array kinds;
    for (int i = 0; i < layers && !list.empty(); ++i) {
      const json::value& own = list[static_cast<std::size_t>(i) % list.size()];
      kinds.emplace_back(own.is_null() ? "full_attention" : "sliding_attention");
      if (!own.is_null() && !window.is_null() && own != window)
        return field_failure("sliding_window", ErrorCode::unsupported,
                             "{} has windows of several sizes, but only one size is supported",
                             params_.where("sliding_window"));
      if (!own.is_null()) window = own;
    }
    fields_["sliding_window"] = std::move(window);
    fields_["layer_types"] = std::move(kinds);
    return {};
  }

  // Converts yarn, and the factor of queries that grows with the position. Without apply_scale, yarn changes
  // only frequencies.
  Result<> rotation() {
    json::object rope{{"rope_type", "default"}, {"rope_theta", fields_["rope_theta"]}};
    TRY(const std::optional<Config> yarn, params_.object("yarn"));
    if (yarn) {
      TRY(const double factor, yarn->number("factor", {1e-3, 1e6}));
      TRY(const int length, yarn->integer("original_max_position_embeddings", kCount));
      TRY(const double fast, yarn->number("beta", {0, 1e6}, 32.0));
      TRY(const double slow, yarn->number("alpha", {0, 1e6}, 1.0));
      TRY(const bool scales, yarn->boolean("apply_scale", true));
      rope["rope_type"] = "yarn";
      rope["factor"] = factor;
      rope["original_max_position_embeddings"] = length;
      rope["beta_fast"] = fast;
      rope["beta_slow"] = slow;
      if (!scales) {
        rope["attention_factor"] = 1;
      } else if (latent()) {
        rope["mscale"] = rope["mscale_all_dim"] = 1;
      }
    }
    TRY(const std::optional<Config> growth, params_.object("llama_4_scaling"));
    if (growth) {
      TRY(const double beta, growth->number("beta", {0, 100}));
      TRY(const int length, growth->integer("original_max_position_embeddings", kCount));
      if (yarn && rope["original_max_position_embeddings"] != length)
        return field_failure("llama_4_scaling.original_max_position_embeddings", ErrorCode::unsupported,
                             "{} is {}, but must be the same as in yarn",
                             growth->where("original_max_position_embeddings"), length);
      rope["llama_4_scaling_beta"] = beta;
      rope["original_max_position_embeddings"] = length;
    }
    fields_["rope_parameters"] = std::move(rope);
    return {};
  }

  Result<> experts() {
    TRY(const std::optional<Config> moe, params_.object("moe"));
    fields_["norm_topk_prob"] = true;
    if (!params_.has("q_lora_rank")) fields_["q_lora_rank"] = nullptr;
    if (!moe) {
      fields_["n_routed_experts"] = nullptr;
      return {};
    }
    TRY(const std::string renormalised, moe->text("renorm_strategy", "WEIGHTS"));
    TRY(const bool bias, moe->boolean("use_load_balancing_bias", false));
    if (renormalised != "WEIGHTS" || bias)
      return field_failure("moe", ErrorCode::unsupported,
                           "{}: renorm_strategy \"{}\" with use_load_balancing_bias {} is not supported: "
                           "must be WEIGHTS and false",
                           params_.where("moe"), renormalised, bias);
    for (const std::string_view field : {"num_experts", "num_experts_per_tok", "expert_hidden_dim"})
      if (!moe->has(field) && (latent() || field != "expert_hidden_dim"))
        return invalid(fmt::format("moe.{}", field), "{} is missing", moe->where(field));
    for (const Field& field : kExperts) rename(field, "moe");
    rename({latent() ? "n_routed_experts" : "num_local_experts", "num_experts"}, "moe");
    return {};
  }

  Result<> quantization() {
    TRY(const std::optional<Config> quantized, params_.object("quantization"));
    if (!quantized) return {};
    if (quantized->has("quant_method")) {
      fields_["quantization_config"] = fields_["quantization"];
      return {};
    }
    TRY(const std::string format, quantized->text("qformat_weight"));
    if (format != "fp8_e4m3")
      return field_failure("quantization.qformat_weight", ErrorCode::unsupported,
                           "{} is \"{}\", which is not supported: must be fp8_e4m3",
                           quantized->where("qformat_weight"), format);
    fields_["quantization_config"] = json::object{{"quant_method", "fp8"}};
    return {};
  }

  bool latent() const { return params_.has("kv_lora_rank"); }

  Result<std::string_view> architecture_of() const {
    TRY(const std::string kind, params_.text("model_type", "transformer"));
    if (kind != "transformer")
      return field_failure("model_type", ErrorCode::unsupported,
                           "{} is \"{}\", which is not supported: must be transformer",
                           params_.where("model_type"), kind);
    const bool moe = params_.has("moe"), mixed = params_.is_list("sliding_window");
    const bool grows = params_.has("llama_4_scaling");
    if (latent()) return "MistralLarge3ForCausalLM";
    if (grows && (moe || mixed))
      return field_failure("llama_4_scaling", ErrorCode::unsupported,
                           "{} is not supported together with experts or with windows in some layers",
                           params_.where("llama_4_scaling"));
    return moe     ? "MixtralForCausalLM"
           : mixed ? "MinistralForCausalLM"
           : grows ? "Ministral3ForCausalLM"
                   : "MistralForCausalLM";
  }

  json::object fields_;
  Config params_;
  Config::Names names_;
};

}  // namespace

bool in_mistral_format(const std::string& directory) {
  const std::filesystem::path base(directory);
  std::error_code ignored;
  return std::filesystem::exists(base / "params.json", ignored) &&
         (!std::filesystem::exists(base / "config.json", ignored) || is_consolidated(directory));
}

Result<Config> parse_params(std::string_view text) {
  TRY(json::value tree, parse_json(text, "params.json", kLimits));
  if (!tree.is_object()) return failure(ErrorCode::corrupt, "params.json: the file must contain an object");
  return Translator(std::move(tree.as_object())).translate();
}

Result<Config> load_params(const std::string& directory) {
  TRY(const MappedFile file, MappedFile::open(directory + "/params.json"));
  return parse_params({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

}  // namespace octavo
