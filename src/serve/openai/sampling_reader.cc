#include "serve/openai/sampling_reader.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/quoted_text.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

using Biases = std::vector<std::pair<TokenId, float>>;

Result<> read_value(Fields& f, std::string_view name, bool& out) { return f.boolean(name, out); }
Result<> read_value(Fields& f, std::string_view name, int& out) { return f.integer(name, out); }
Result<> read_value(Fields& f, std::string_view name, double& out) { return f.number(name, out); }
Result<> read_value(Fields& f, std::string_view name, std::optional<int>& out) {
  return f.integer(name, out);
}
Result<> read_value(Fields& f, std::string_view name, std::optional<std::int64_t>& out) {
  return f.integer64(name, out);
}
Result<> read_value(Fields& f, std::string_view name, std::vector<TokenId>& out) {
  return f.integers(name, out);
}

Result<> read_value(Fields& f, std::string_view name, std::vector<std::string>& out) {
  return name == "stop" ? f.one_or_more_texts(name, out) : f.texts(name, out);
}

constexpr std::size_t kWrongKeysShown = 8;  // maximum number of wrong keys in an error message

// Reads {"token id": bias}.
Result<> read_value(Fields& f, std::string_view name, Biases& out) {
  TRY(const json::object* biases, f.object(name));
  if (!biases) return {};
  std::string wrong;
  std::size_t listed = 0;
  for (const auto& [key, value] : *biases) {
    const std::string_view text = key;
    TokenId id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc{} || end != text.data() + text.size()) {
      if (listed++ < kWrongKeysShown)
        wrong += fmt::format("{}{}", wrong.empty() ? "" : ", ", quoted_text(text.substr(0, 32)));
      continue;
    }
    const auto bias = rounded_number(value);
    if (!bias) return invalid(name, "the bias of token {} must be a number", id);
    out.emplace_back(id, static_cast<float>(std::clamp(*bias, -100.0, 100.0)));
  }
  if (listed > kWrongKeysShown) wrong += fmt::format(" and {} more", listed - kWrongKeysShown);
  if (listed > 0) return invalid(name, "must have token ids as keys, got {}", wrong);
  return {};
}

Result<> read_value(Fields& f, std::string_view name, RepetitionDetection& out) {
  TRY(const json::object* repetition, f.object(name));
  if (!repetition) return {};
  Fields r(*repetition, std::string(name) + ".");
  TRY_VOID(r.integer("max_pattern_size", out.max_pattern_size));
  TRY_VOID(r.integer("min_pattern_size", out.min_pattern_size));
  return r.integer("min_count", out.min_count);
}

Result<> read_field(Fields& f, const SamplingField& field, SamplingParams& out) {
  return std::visit([&](auto member) { return read_value(f, field.name, member(out)); }, field.member);
}

Result<> read_part(Fields& f, SamplingParams& out, bool draws) {
  for (const SamplingField& field : sampling_fields())
    if ((field.part == SamplingField::Part::draws) == draws) TRY_VOID(read_field(f, field, out));
  return {};
}

json::object list_of(json::object items) { return {{"type", "array"}, {"items", std::move(items)}}; }

json::object number_schema(const SamplingField& field, bool whole, double type_most) {
  json::object out{{"type", whole ? "integer" : "number"}};
  const auto bound = [&](double value) -> json::value {
    if (whole) return static_cast<std::int64_t>(value);
    return value;
  };
  if (std::isfinite(field.least))
    out[field.above_least ? "exclusiveMinimum" : "minimum"] = bound(field.least);
  if (const double most = std::min(field.most, type_most); std::isfinite(most)) out["maximum"] = bound(most);
  return out;
}

// Returns the alternatives in the schema of a number: the number, or a string with it, which clients may also
// send.
json::array number_forms(json::object number) {
  const bool whole = number.at("type") == "integer";
  const char* pattern = whole ? "^-?[0-9]+$" : "^[+-]?[0-9]*[.]?[0-9]*([eE][+-]?[0-9]+)?$";
  return {std::move(number), json::object{{"type", "string"}, {"pattern", pattern}}};
}

template <class T>
json::array forms(const SamplingField& field, const T*) {
  const json::object text{{"type", "string"}, {"minLength", 1}};
  if constexpr (std::is_same_v<T, bool>) {
    return {json::object{{"type", "boolean"}}};
  } else if constexpr (std::is_same_v<T, double>) {
    return number_forms(number_schema(field, false, std::numeric_limits<double>::infinity()));
  } else if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>) {
    return number_forms(number_schema(field, true, std::numeric_limits<int>::max()));
  } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
    return number_forms(number_schema(field, true, std::numeric_limits<double>::infinity()));
  } else if constexpr (std::is_same_v<T, std::vector<TokenId>>) {
    return {json::object{{"$ref", "#/components/schemas/TokenIds"}}};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (field.name == "stop") return {text, list_of(text)};
    return {list_of(text)};
  } else if constexpr (std::is_same_v<T, Biases>) {
    return {json::object{{"type", "object"},
                         {"propertyNames", json::object{{"pattern", "^[0-9]+$"}}},
                         {"additionalProperties", json::object{{"type", "number"}}}}};
  } else {
    static_assert(std::is_same_v<T, RepetitionDetection>);
    return {json::object{{"type", "object"}}};
  }
}

}  // namespace

Result<GenerationDefaults> generation_defaults(const json::object& config) {
  GenerationDefaults out;
  Fields f(config);
  SamplingParams read;
  for (const SamplingField& field : sampling_fields()) {
    if (!field.generation_config) continue;
    TRY_VOID(read_field(f, field, read));
    if (!f.any(field.name)) continue;
    std::visit(
        [&]<class T>(MemberPath<SamplingParams, T> member) {
          if constexpr (std::is_arithmetic_v<T>) out.sampling[field.name] = member(read);
        },
        field.member);
  }
  TRY_VOID(f.integer("max_new_tokens", out.max_tokens, 1));
  return out;
}

bool is_generation_default(std::string_view name) {
  const SamplingField* field = find_sampling_field(name);
  return name == "max_new_tokens" || (field && field->generation_config);
}

Result<> read_draws(Fields& f, const GenerationDefaults& defaults, SamplingParams& out,
                    std::optional<double> temperature) {
  Fields models(defaults.sampling);
  TRY_VOID(read_part(models, out, true));
  if (temperature) out.temperature = *temperature;
  return read_part(f, out, true);
}

Result<> read_other_sampling(Fields& f, SamplingParams& out) {
  for (const std::string_view name : {"allowed_token_ids", "logprob_token_ids"}) {
    TRY(const json::array* ids, f.array(name));
    if (ids && ids->empty()) return invalid(name, "must not be an empty list");
  }
  return read_part(f, out, false);
}

json::object sampling_schema(const SamplingField& field) {
  json::array any = std::visit(
      [&]<class T>(MemberPath<SamplingParams, T>) { return forms(field, static_cast<const T*>(nullptr)); },
      field.member);
  any.push_back(json::object{{"type", "null"}});
  return {{"description", field.help}, {"anyOf", std::move(any)}};
}

}  // namespace octavo::openai
