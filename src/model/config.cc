#include "model/config.h"

#include <boost/json/parse.hpp>
#include <cmath>
#include <utility>

#include "model/params_file.h"
#include "tensor/mapped_file.h"
#include "weights/checkpoint.h"
#include "weights/json.h"

namespace octavo {
namespace {

constexpr JsonLimits kConfigLimits{.bytes = std::size_t{4} << 20, .depth = 16};
constexpr std::size_t kListMax = 4096;

boost::json::string_view key_of(std::string_view field) { return {field.data(), field.size()}; }

// "Infinity", which is not JSON, is replaced by this number of the same length.
constexpr std::string_view kInfinity = "Infinity", kLargest = "1e308   ";
static_assert(kInfinity.size() == kLargest.size());

// Python writes infinity as the bare word Infinity. Replaces it by kLargest. The length of the text stays the
// same, so that length limits apply.
std::string without_infinities(std::string_view text) {
  std::string out(text.substr(0, kConfigLimits.bytes + 1));
  bool quoted = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '"') quoted = !quoted;
    if (quoted && out[i] == '\\') ++i;
    if (!quoted && out.compare(i, kInfinity.size(), kInfinity) == 0)
      out.replace(i, kLargest.size(), kLargest);
  }
  return out;
}

// Converts a value to a number. Accepts infinity as transformers 5 writes it.
std::optional<double> as_number(const boost::json::value& value) {
  if (value.is_object()) {
    const auto* named = value.get_object().if_contains("__float__");
    if (named != nullptr && *named == boost::json::value("Infinity")) return 1e308;
  }
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (value.is_double()) return value.get_double();
  return std::nullopt;
}

// `where` is the result of Config::where().
Result<double> number_in(const boost::json::value& value, std::string_view field, std::string_view where,
                         Config::RealRange range) {
  const auto number = as_number(value);
  if (!number) return invalid(field, "{} must be a number", where);
  if (!std::isfinite(*number) || *number < range.least || *number > range.most)
    return invalid(field, "{} is {}, but must be in [{}, {}]", where, *number, range.least, range.most);
  return *number;
}

Result<int> integer_in(const boost::json::value& value, std::string_view field, std::string_view where,
                       Config::Range range) {
  // Some programs write integers as 1024.0.
  const auto number = as_number(value);
  if (!number || std::trunc(*number) != *number) return invalid(field, "{} must be a whole number", where);
  if (*number < static_cast<double>(range.least) || *number > static_cast<double>(range.most)) {
    return invalid(field, "{} is {}, but must be in [{}, {}]", where, *number, range.least, range.most);
  }
  return static_cast<int>(*number);
}

void merge(boost::json::object& fields, const boost::json::object& overrides) {
  for (const auto& [name, value] : overrides) {
    boost::json::value& field = fields[name];
    if (field.is_object() && value.is_object())
      merge(field.get_object(), value.get_object());
    else
      field = value;
  }
}

// transformers 5 writes rope_parameters instead of rope_scaling. If an override has rope_scaling, only the
// scaling changes. If rope_parameters has an object for each layer type, only layers with full attention
// change.
void keep_rotation(boost::json::object& fields, const boost::json::object& overrides) {
  constexpr std::string_view kKept[] = {"rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved"};
  auto* newer = fields.if_contains("rope_parameters");
  const auto* older = overrides.if_contains("rope_scaling");
  if (newer != nullptr && newer->is_object() && older != nullptr && older->is_object()) {
    boost::json::object& all = newer->get_object();
    auto* full = all.if_contains("full_attention");
    const bool by_kind = full != nullptr && full->is_object();
    boost::json::object& changed = by_kind ? full->get_object() : all;
    boost::json::object scaling = older->get_object();
    for (const std::string_view field : kKept)
      if (const auto* value = changed.if_contains(key_of(field)); value && !scaling.contains(key_of(field)))
        scaling[key_of(field)] = *value;
    changed = std::move(scaling);
    fields["rope_scaling"] = nullptr;
  }
  auto* text = fields.if_contains("text_config");
  const auto* of_text = overrides.if_contains("text_config");
  if (text != nullptr && text->is_object() && of_text != nullptr && of_text->is_object())
    keep_rotation(text->get_object(), of_text->get_object());
}

}  // namespace

Result<Config> Config::parse(std::string_view text, const boost::json::object& overrides) {
  TRY(boost::json::value tree, parse_json(without_infinities(text), "config.json", kConfigLimits));
  if (!tree.is_object()) return failure(ErrorCode::corrupt, "config.json: the file must contain an object");
  merge(tree.get_object(), overrides);
  keep_rotation(tree.get_object(), overrides);
  Config config;
  config.fields_ = std::move(tree.get_object());
  if (const auto* nested = config.fields_.if_contains("text_config");
      nested != nullptr && nested->is_object()) {
    boost::json::object inner = nested->get_object();
    config.outer_ = std::exchange(config.fields_, std::move(inner));
  }
  return config;
}

Result<Config> Config::load(const std::string& directory, const boost::json::object& overrides) {
  TRY_VOID(check_model_path(directory));
  if (in_mistral_format(directory)) {
    if (!overrides.empty())
      return invalid("hf_overrides", "needs a config.json, but {} has a params.json", directory);
    return load_params(directory);
  }
  TRY(const MappedFile file, MappedFile::open(directory + "/config.json"));
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, overrides);
}

Config Config::with_fields_of(const Config& other) const {
  Config config = *this;
  merge(config.fields_, other.fields_);
  return config;
}

Config Config::of(boost::json::object fields, std::string file, Names names) {
  Config config;
  config.fields_ = std::move(fields);
  config.file_ = std::move(file);
  config.names_ = std::move(names);
  return config;
}

Config Config::with_names(const Names& names) const {
  Config config = *this;
  for (const auto& [own, written] : names)
    if (const auto* value = find(written)) {
      config.fields_[key_of(own)] = *value;
      config.names_[own] = path_of(written);
    }
  return config;
}

std::string Config::where(std::string_view field) const {
  const auto name = names_.find(field);
  return fmt::format("{}: {}", file_, name != names_.end() ? name->second : path_of(field));
}

Config Config::without(std::string_view field) const {
  Config config = *this;
  config.fields_.erase(key_of(field));
  config.outer_.erase(key_of(field));
  return config;
}

Config Config::outer() const {
  Config config = *this;
  config.defaults_ = {};
  if (!outer_.empty()) config.fields_ = std::exchange(config.outer_, {});
  return config;
}

void Config::set_defaults(std::string_view json) {
  defaults_ = boost::json::parse({json.data(), json.size()}).as_object();
}

const boost::json::value* Config::find(std::string_view field) const {
  bool is_null = false;
  for (const auto* object : {&fields_, &outer_}) {
    const auto* value = object->if_contains(key_of(field));
    if (value != nullptr && !value->is_null()) return value;
    is_null |= value != nullptr;
  }
  return is_null ? nullptr : defaults_.if_contains(key_of(field));
}

bool Config::is_list(std::string_view field) const {
  const auto* value = find(field);
  return value != nullptr && value->is_array();
}

// Returns the value of a field, converted by `read`, or the fallback if the field is missing.
template <class T, class Read>
Result<T> Config::one(std::string_view field, const std::optional<T>& fallback, Read read) const {
  const auto* value = find(field);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return invalid(path_of(field), "{} is missing", where(field));
  return read(*value);
}

// Returns the elements of a list, converted by `read`. The result is empty if the field is missing. `what`
// names the elements in errors.
template <class T, class Read>
Result<std::vector<T>> Config::items(std::string_view field, std::string_view what, Read read) const {
  std::vector<T> list;
  const auto* value = find(field);
  if (value == nullptr) return list;
  if (!value->is_array() || value->get_array().size() > kListMax)
    return invalid(path_of(field), "{} must be a list of at most {} {}", where(field), kListMax, what);
  for (const auto& item : value->get_array()) {
    TRY(T element, read(item));
    list.push_back(std::move(element));
  }
  return list;
}

Result<int> Config::integer(std::string_view field, Range range, std::optional<int> fallback) const {
  return one(field, fallback,
             [&](const auto& value) { return integer_in(value, path_of(field), where(field), range); });
}

Result<double> Config::number(std::string_view field, RealRange range, std::optional<double> fallback) const {
  return one(field, fallback,
             [&](const auto& value) { return number_in(value, path_of(field), where(field), range); });
}

Result<bool> Config::boolean(std::string_view field, std::optional<bool> fallback) const {
  return one(field, fallback, [&](const auto& value) -> Result<bool> {
    if (!value.is_bool()) return invalid(path_of(field), "{} must be true or false", where(field));
    return value.get_bool();
  });
}

Result<std::string> Config::text(std::string_view field, std::optional<std::string> fallback) const {
  return one(field, fallback, [&](const auto& value) -> Result<std::string> {
    if (!value.is_string()) return invalid(path_of(field), "{} must be a string", where(field));
    return std::string(value.get_string());
  });
}

Result<std::vector<double>> Config::numbers(std::string_view field, std::size_t count,
                                            RealRange range) const {
  const auto* value = find(field);
  if (value == nullptr) return invalid(path_of(field), "{} is missing", where(field));
  if (!value->is_array() || value->get_array().size() != count)
    return invalid(path_of(field), "{} must be a list of {} numbers", where(field), count);
  return items<double>(field, "numbers", [&](const auto& item) {
    return number_in(item, path_of(field), where(field), range);
  });
}

Result<std::vector<int>> Config::integers(std::string_view field, Range range) const {
  return items<int>(field, "numbers",
                    [&](const auto& item) { return integer_in(item, path_of(field), where(field), range); });
}

Result<std::vector<std::array<int, 2>>> Config::pairs(std::string_view field, Range range) const {
  using Pair = std::array<int, 2>;
  return items<Pair>(field, "pairs", [&](const auto& item) -> Result<Pair> {
    const auto* both = item.if_array();
    if (both == nullptr || both->size() != 2)
      return invalid(path_of(field), "{} must be a list of pairs", where(field));
    TRY(const int first, integer_in((*both)[0], path_of(field), where(field), range));
    TRY(const int second, integer_in((*both)[1], path_of(field), where(field), range));
    return Pair{first, second};
  });
}

Result<std::vector<std::string>> Config::texts(std::string_view field) const {
  return items<std::string>(field, "strings", [&](const auto& item) -> Result<std::string> {
    if (!item.is_string()) return invalid(path_of(field), "{} must be a list of strings", where(field));
    return std::string(item.get_string());
  });
}

Result<std::vector<std::string>> Config::numbered_texts(std::string_view field) const {
  TRY(const std::optional<Config> all, object(field));
  std::vector<std::string> list;
  if (!all) return list;
  if (all->fields_.size() > kListMax)
    return invalid(path_of(field), "{} has {} members, but the limit is {}", where(field),
                   all->fields_.size(), kListMax);
  for (std::size_t i = 0; i < all->fields_.size(); ++i) {
    TRY(std::string text, all->text(fmt::format("{}", i)));
    list.push_back(std::move(text));
  }
  return list;
}

Result<std::optional<Config>> Config::object(std::string_view field) const {
  const auto* value = find(field);
  if (value == nullptr) return std::optional<Config>{};
  const std::string path = path_of(field);
  if (!value->is_object()) return invalid(path, "{} must be an object", where(field));
  Config nested;
  nested.fields_ = value->get_object();
  nested.path_ = path + ".";
  nested.file_ = file_;
  return std::optional(std::move(nested));
}

Result<std::vector<Config>> Config::list(std::string_view field) const {
  std::size_t number = 0;
  return items<Config>(field, "objects", [&](const auto& item) -> Result<Config> {
    if (!item.is_object()) return invalid(path_of(field), "{} must be a list of objects", where(field));
    Config one;
    one.fields_ = item.get_object();
    one.path_ = fmt::format("{}[{}].", path_of(field), number++);
    one.file_ = file_;
    return one;
  });
}

Result<std::vector<Config>> Config::objects(std::string_view field) const {
  constexpr std::size_t kObjectsMax = 64;
  TRY(const std::optional<Config> all, object(field));
  std::vector<Config> list;
  if (!all) return list;
  if (all->fields_.size() > kObjectsMax)
    return invalid(path_of(field), "config.json: {} has {} members, but the limit is {}", path_of(field),
                   all->fields_.size(), kObjectsMax);
  for (const auto& [key, value] : all->fields_) {
    TRY(std::optional<Config> member, all->object(std::string_view(key.data(), key.size())));
    if (member) list.push_back(std::move(*member));
  }
  return list;
}

}  // namespace octavo
