#include "fleet/sidecar/usage.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "fleet/proxy/event_cutter.h"
#include "fleet/proxy/json_body.h"
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

bool has_text(const json::object& answer) {
  const json::object* choice = first_choice(answer);
  if (!choice) return false;
  for (const auto path : {find_path(*choice, {"text"}), find_path(*choice, {"delta", "content"}),
                          find_path(*choice, {"delta", "reasoning"})})
    if (path && path->is_string() && !path->get_string().empty()) return true;
  return find_path(*choice, {"delta", "tool_calls"}) != nullptr;
}

}  // namespace

std::string with_cached_tokens(const std::string& answer, std::int64_t tokens) {
  if (answer.find("\"usage\"") == std::string::npos) return answer;
  const bool event = answer.starts_with(EventCutter::kData);
  std::optional<json::object> read = json_object(
      event ? std::string_view(answer).substr(EventCutter::kData.size()) : std::string_view(answer));
  json::value* usage = read ? read->if_contains("usage") : nullptr;
  if (!usage || !usage->is_object()) return answer;
  json::value& details = usage->get_object()["prompt_tokens_details"];
  json::object& cached = details.is_object() ? details.get_object() : details.emplace_object();
  cached["cached_tokens"] = tokens;
  const std::string text = json::serialize(*read);
  return event ? http::sse_event(text) : text;
}

bool not_cached(std::string_view answer) {
  const std::optional<json::object> read = json_object(answer);
  return read && ended_by_threshold(*read);
}

Beginning beginning_of(std::string_view events) {
  http::SseReader reader;
  for (const std::string& data : reader.push(events)) {
    const std::optional<json::object> chunk = json_object(data);
    if (!chunk || has_text(*chunk)) return Beginning::answer;
    if (ended_by_threshold(*chunk)) return Beginning::not_cached;
  }
  return Beginning::unknown;
}

}  // namespace octavo::fleet
