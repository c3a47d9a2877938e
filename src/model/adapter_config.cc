#include "model/adapter_config.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "model/config.h"
#include "weights/json.h"

namespace octavo {

namespace json = boost::json;

namespace {

constexpr std::string_view kFile = "adapter_config.json";

// Options that the engine does not support, because they change the product.
constexpr std::string_view kUnsupported[] = {"use_dora",
                                             "use_qalora",
                                             "lora_bias",
                                             "modules_to_save",
                                             "trainable_token_indices",
                                             "layer_replication",
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
      return field_failure(field, ErrorCode::unsupported, "{}: {} must not be set to {}", kFile, field,
                           json::serialize(*value));
  return {};
}

// Returns an error unless the field has one of the values in `known`. A missing field counts as `absent`.
Result<> expect_text(const Config& config, std::string_view field, std::string_view absent,
                     std::initializer_list<std::string_view> known) {
  TRY(const std::string text, config.text(field, std::string(absent)));
  for (const std::string_view one : known)
    if (text == one) return {};
  return field_failure(field, ErrorCode::unsupported, "{}: {} is {}, but only {} is supported", kFile, field,
                       text, *known.begin());
}

// Reads an object that maps module names to numbers. PEFT also accepts regular expressions as names, but does
// not write any.
template <class T>
Result<std::vector<std::pair<std::string, T>>> read_patterns(const json::object& config, std::string_view field,
                                                             double least, double most) {
  constexpr std::string_view kSpecial = "*+?()[]{}|\\$";
  std::vector<std::pair<std::string, T>> patterns;
  const json::value* value = config.if_contains(field);
  if (value == nullptr || value->is_null()) return patterns;
  if (!value->is_object()) return invalid(field, "{}: {} must be an object", kFile, field);
  for (const auto& [key, entry] : value->get_object()) {
    const std::string name(key);
    if (name.empty() || name.find_first_of(kSpecial) != name.npos || name.find('^', 1) != name.npos)
      return field_failure(field, ErrorCode::unsupported, "{}: {} has \"{}\", but must have names of modules",
                           kFile, field, name);
    const double number = entry.is_number() ? entry.template to_number<double>() : NAN;
    if (!(number >= least && number <= most) || static_cast<double>(static_cast<T>(number)) != number)
      return invalid(field, "{}: {}[\"{}\"] is {}, but must be a number from {} to {}", kFile, field, name,
                     json::serialize(entry), least, most);
    patterns.emplace_back(name, static_cast<T>(number));
  }
  return patterns;
}

// Returns an error for initialisations that change the base model, because the adapter does not fit the
// unchanged model.
Result<> check_initialisation(const json::object& config) {
  const json::value* value = config.if_contains("init_lora_weights");
  if (value == nullptr || !value->is_string()) return {};
  const std::string_view text = value->get_string();
  for (const std::string_view harmless : {"gaussian", "eva", "orthogonal"})
    if (text == harmless) return {};
  return field_failure("init_lora_weights", ErrorCode::unsupported,
                       "{}: init_lora_weights is {}, which needs a changed base model", kFile, text);
}

// Returns whether a pattern matches a module. A pattern that begins with "^" must be the full name.
bool names(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return module == pattern.substr(1);
  return module.ends_with(pattern) &&
         (module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.');
}

}  // namespace

template <class T>
T AdapterConfig::ByModule<T>::of(std::string_view module) const {
  const auto found = std::ranges::find_if(patterns, [&](const auto& one) { return names(one.first, module); });
  return found != patterns.end() ? found->second : usual;
}

float AdapterConfig::scale_of(std::string_view module) const {
  const double r = rank.of(module);
  return static_cast<float>(alpha.of(module) / (by_root ? std::sqrt(r) : r));
}

int AdapterConfig::rank_max() const {
  int most = rank.usual;
  for (const auto& [name, r] : rank.patterns) most = std::max(most, r);
  return most;
}

template int AdapterConfig::ByModule<int>::of(std::string_view) const;

Result<AdapterConfig> load_adapter_config(const std::string& directory) {
  TRY(const json::value value, read_json_file(fmt::format("{}/{}", directory, kFile)));
  if (!value.is_object()) return failure(ErrorCode::corrupt, "{} must contain a JSON object", kFile);
  TRY_VOID(refuse_unsupported(value.get_object()));
  TRY_VOID(check_initialisation(value.get_object()));
  const Config config = Config::of(value.get_object(), std::string(kFile), {});
  TRY_VOID(expect_text(config, "peft_type", "LORA", {"LORA"}));
  TRY_VOID(expect_text(config, "bias", "none", {"none"}));
  AdapterConfig adapter;
  constexpr int kRankMost = 1 << 16;
  constexpr double kAlphaMost = 1e6;
  const json::object& fields = value.get_object();
  TRY(adapter.rank.usual, config.integer("r", {1, kRankMost}));
  TRY(adapter.rank.patterns, read_patterns<int>(fields, "rank_pattern", 1, kRankMost));
  TRY(adapter.alpha.usual, config.number("lora_alpha", {-kAlphaMost, kAlphaMost}, 8));
  TRY(adapter.alpha.patterns, read_patterns<double>(fields, "alpha_pattern", -kAlphaMost, kAlphaMost));
  TRY(adapter.by_root, config.boolean("use_rslora", false));
  TRY(adapter.tied, config.boolean("ensure_weight_tying", false));
  return adapter;
}

}  // namespace octavo
