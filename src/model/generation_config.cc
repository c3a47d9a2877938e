#include "model/generation_config.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <limits>

#include "weights/json.h"

namespace octavo {
namespace {

using boost::json::value;

// nullopt when the field is not there, or null.
Result<std::optional<double>> number(const boost::json::object& file, std::string_view field) {
  const value* v = file.if_contains(field);
  if (v == nullptr || v->is_null()) return std::nullopt;
  if (!v->is_number())
    return field_failure(field, ErrorCode::corrupt, "generation_config.json: {} is not a number", field);
  return v->to_number<double>();
}

Result<std::optional<int>> integer(const boost::json::object& file, std::string_view field) {
  TRY(const std::optional<double> v, number(file, field));
  if (!v) return std::nullopt;
  if (*v != static_cast<int>(*v))
    return field_failure(field, ErrorCode::corrupt, "generation_config.json: {} is not a whole number: {}",
                         field, *v);
  return static_cast<int>(*v);
}

// eos_token_id: one id, a list of them, or null.
Result<> add_end_tokens(const boost::json::object& file, std::vector<std::int32_t>& ids) {
  const value* v = file.if_contains("eos_token_id");
  if (v == nullptr || v->is_null()) return {};
  const auto add = [&](const value& id) -> Result<> {
    const std::int64_t* n = id.if_int64();
    if (n == nullptr || *n < 0 || *n > std::numeric_limits<std::int32_t>::max())
      return field_failure("eos_token_id", ErrorCode::corrupt,
                           "eos_token_id is not a token id or a list of them");
    ids.push_back(static_cast<std::int32_t>(*n));
    return {};
  };
  if (const boost::json::array* list = v->if_array()) {
    for (const value& id : *list) TRY_VOID(add(id));
    return {};
  }
  return add(*v);
}

// An object of that name in the directory; an empty one when there is no such file.
Result<boost::json::object> read_object(const std::string& directory, std::string_view name) {
  auto file = read_json_file(fmt::format("{}/{}", directory, name));
  if (!file && file.error().code == ErrorCode::not_found) return boost::json::object{};
  if (!file) return std::unexpected(file.error());
  if (!file->is_object()) return failure(ErrorCode::corrupt, "{} is not a JSON object", name);
  return file->as_object();
}

}  // namespace

Result<GenerationConfig> load_generation_config(const std::string& directory) {
  TRY(const boost::json::object generation, read_object(directory, "generation_config.json"));
  TRY(const boost::json::object config, read_object(directory, "config.json"));
  GenerationConfig g;
  TRY(g.temperature, number(generation, "temperature"));
  TRY(g.top_p, number(generation, "top_p"));
  TRY(g.top_k, integer(generation, "top_k"));
  TRY(g.min_p, number(generation, "min_p"));
  TRY(g.repetition_penalty, number(generation, "repetition_penalty"));
  TRY(g.max_new_tokens, integer(generation, "max_new_tokens"));
  TRY_VOID(add_end_tokens(generation, g.eos_ids));
  TRY_VOID(add_end_tokens(config, g.eos_ids));
  std::ranges::sort(g.eos_ids);
  g.eos_ids.erase(std::ranges::unique(g.eos_ids).begin(), g.eos_ids.end());
  return g;
}

}  // namespace octavo
