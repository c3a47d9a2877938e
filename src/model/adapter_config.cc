#include "model/adapter_config.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <string_view>
#include <utility>

#include "model/config.h"
#include "weights/json.h"

namespace octavo {

namespace json = boost::json;

namespace {

constexpr std::string_view kFile = "adapter_config.json";

// What changes the product in ways that are not computed here.
constexpr std::string_view kUnsupported[] = {"use_dora",
                                             "use_qalora",
                                             "lora_bias",
                                             "modules_to_save",
                                             "trainable_token_indices",
                                             "layer_replication",
                                             "rank_pattern",
                                             "alpha_pattern",
                                             "alora_invocation_tokens",
                                             "arrow_config",
                                             "kasa_config",
                                             "monteclora_config",
                                             "velora_config",
                                             "use_bdlora"};

bool is_off(const json::value& value) {
  return value.is_null() || (value.is_bool() && !value.get_bool()) ||
         (value.is_array() && value.get_array().empty()) || (value.is_object() && value.get_object().empty());
}

Result<> refuse_unsupported(const json::object& config) {
  for (const std::string_view field : kUnsupported)
    if (const json::value* value = config.if_contains(field); value != nullptr && !is_off(*value))
      return field_failure(field, ErrorCode::unsupported, "{}: {} = {} is not supported", kFile, field,
                           json::serialize(*value));
  return {};
}

// A text that may be absent, and must then be one of these.
Result<> expect_text(const Config& config, std::string_view field, std::string_view absent,
                     std::initializer_list<std::string_view> known) {
  TRY(const std::string text, config.text(field, std::string(absent)));
  for (const std::string_view one : known)
    if (text == one) return {};
  return field_failure(field, ErrorCode::unsupported, "{}: {} is {}, only {} can be loaded", kFile, field,
                       text, *known.begin());
}

// Other ways to begin leave a changed base model behind, which the adapter belongs to.
Result<> check_initialisation(const json::object& config) {
  const json::value* value = config.if_contains("init_lora_weights");
  if (value == nullptr || !value->is_string()) return {};
  const std::string_view text = value->get_string();
  for (const std::string_view harmless : {"gaussian", "eva", "orthogonal"})
    if (text == harmless) return {};
  return field_failure("init_lora_weights", ErrorCode::unsupported,
                       "{}: init_lora_weights is {}, which needs a changed base model", kFile, text);
}

}  // namespace

Result<AdapterConfig> load_adapter_config(const std::string& directory) {
  TRY(const json::value value, read_json_file(fmt::format("{}/{}", directory, kFile)));
  if (!value.is_object()) return failure(ErrorCode::corrupt, "{} is not a JSON object", kFile);
  TRY_VOID(refuse_unsupported(value.get_object()));
  TRY_VOID(check_initialisation(value.get_object()));
  const Config config = Config::of(value.get_object(), std::string(kFile), {});
  TRY_VOID(expect_text(config, "peft_type", "LORA", {"LORA"}));
  TRY_VOID(expect_text(config, "bias", "none", {"none"}));
  AdapterConfig adapter;
  TRY(adapter.rank, config.integer("r", {1, 1 << 16}));
  TRY(const double alpha, config.number("lora_alpha", {-1e6, 1e6}, 8));
  TRY(const bool by_root, config.boolean("use_rslora", false));
  adapter.scale = static_cast<float>(by_root ? alpha / std::sqrt(adapter.rank) : alpha / adapter.rank);
  TRY(adapter.tied, config.boolean("ensure_weight_tying", false));
  return adapter;
}

}  // namespace octavo
