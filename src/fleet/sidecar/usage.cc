#include "fleet/sidecar/usage.h"

#include <algorithm>
#include <boost/json/array.hpp>

#include "fleet/relay/json_body.h"
#include "http/sse.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

const json::object* first_choice(const json::object& answer) {
  const json::value* choices = answer.if_contains("choices");
  const json::array* all = choices ? choices->if_array() : nullptr;
  return all && !all->empty() ? all->front().if_object() : nullptr;
}

bool ended_by_threshold(const json::object& answer) {
  const json::object* choice = first_choice(answer);
  const json::value* reason = choice ? choice->if_contains("finish_reason") : nullptr;
  return reason && *reason == "cache_threshold";
}

bool has_content(const json::value* value) {
  if (!value) return false;
  if (const json::string* text = value->if_string()) return !text->empty();
  if (const json::array* items = value->if_array()) return !items->empty();
  return value->is_object();
}

// Returns whether the chunk contains text, tokens, or a delta other than the role. A chunk without
// `choices` always counts as an answer.
bool is_answer(const json::object& chunk) {
  if (!chunk.contains("choices")) return true;
  const json::object* choice = first_choice(chunk);
  if (!choice) return false;
  if (has_content(choice->if_contains("text")) || has_content(choice->if_contains("token_ids"))) return true;
  const json::value* delta = choice->if_contains("delta");
  if (!delta || !delta->is_object()) return false;
  return std::ranges::any_of(delta->get_object(), [](const json::key_value_pair& member) {
    return member.key() != "role" && has_content(&member.value());
  });
}

}  // namespace

bool not_cached(std::string_view answer) {
  const std::optional<json::object> read = json_object(answer);
  return read && ended_by_threshold(*read);
}

Beginning beginning_of(std::string_view event) {
  for (const std::string& data : http::SseReader().push(event)) {
    const std::optional<json::object> chunk = json_object(data);
    if (!chunk || is_answer(*chunk)) return Beginning::answer;
    if (ended_by_threshold(*chunk)) return Beginning::not_cached;
  }
  return Beginning::unknown;
}

}  // namespace octavo::fleet
