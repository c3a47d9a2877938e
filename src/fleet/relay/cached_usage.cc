#include "fleet/relay/cached_usage.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>

#include "base/exact_json.h"
#include "fleet/relay/event_cutter.h"
#include "fleet/relay/json_body.h"
#include "http/sse.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::string_view kCacheRead = "cache_read_input_tokens";

// The object `usage` is at the top level of a response, and in the object `response` (Responses API) or
// `message` (Anthropic) of an event.
json::object* usage_in(json::object& answer) {
  for (const std::string_view holder : {"", "response", "message"}) {
    json::value* inner = holder.empty() ? nullptr : answer.if_contains(holder);
    if (!holder.empty() && !(inner && inner->is_object())) continue;
    json::object& owner = inner ? inner->get_object() : answer;
    json::value* usage = owner.if_contains("usage");
    if (usage && usage->is_object()) return &usage->get_object();
  }
  return nullptr;
}

std::int64_t count_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_int64() ? value->get_int64() : 0;
}

bool is_anthropic(const json::object& usage) { return usage.contains(kCacheRead); }

// Returns the name of the usage field whose object has cached_tokens. Returns "" if the usage has no number
// of prompt tokens.
std::string_view details_name(const json::object& usage) {
  constexpr std::string_view kOpenai = "prompt_tokens_details";
  if (usage.contains("prompt_tokens") || usage.contains(kOpenai)) return kOpenai;
  return usage.contains("input_tokens_details") ? "input_tokens_details" : "";
}

}  // namespace

std::int64_t cached_tokens(std::string_view answer) {
  std::optional<json::object> reply = json_object(answer);
  const json::object* usage = reply ? usage_in(*reply) : nullptr;
  if (!usage) return 0;
  if (is_anthropic(*usage)) return count_of(*usage, kCacheRead);
  const std::string_view name = details_name(*usage);
  const json::value* details = name.empty() ? nullptr : usage->if_contains(name);
  return details && details->is_object() ? count_of(details->get_object(), "cached_tokens") : 0;
}

std::string with_cached_tokens(const std::string& answer, std::int64_t tokens) {
  if (answer.find("\"usage\"") == std::string::npos) return answer;
  const std::size_t data_at =
      std::min(answer.starts_with("data:") ? 0 : answer.find("\ndata:") + 1, answer.size());
  const std::optional<std::string_view> data = data_of(std::string_view(answer).substr(data_at));
  std::optional<json::object> read = json_object(data.value_or(answer));
  json::object* usage = read ? usage_in(*read) : nullptr;
  if (!usage) return answer;
  if (is_anthropic(*usage)) {
    // Anthropic's input_tokens does not include the cached tokens.
    const std::int64_t all = count_of(*usage, "input_tokens") + count_of(*usage, kCacheRead);
    (*usage)[kCacheRead] = tokens;
    (*usage)["input_tokens"] = std::max<std::int64_t>(all - tokens, 0);
  } else if (const std::string_view name = details_name(*usage); !name.empty()) {
    json::value& details = (*usage)[name];
    if (tokens == 0 && !details.is_object()) return answer;
    (details.is_object() ? details.get_object() : details.emplace_object())["cached_tokens"] = tokens;
  } else {
    return answer;
  }
  const std::string text = exact_json_text(*read);
  return data ? answer.substr(0, data_at) + http::sse_event(text) : text;
}

}  // namespace octavo::fleet
