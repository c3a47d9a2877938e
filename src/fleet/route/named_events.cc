// The part of ResumableStream for named events, as in /v1/messages and /v1/responses.
#include <algorithm>
#include <array>

#include "base/exact_json.h"
#include "fleet/relay/json_body.h"
#include "fleet/route/resumable_stream.h"
#include "http/sse.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::size_t kHeldBytesMax = 4 << 20;  // larger than the events of any decoding step

// Returns nullopt if the event is a comment or not JSON.
std::optional<json::object> json_of(std::string_view event) {
  const std::size_t line = event.starts_with("data:") ? 0 : event.find("\ndata:") + 1;
  const std::optional<std::string_view> data = data_of(event.substr(line));
  return data ? json_object(*data) : std::nullopt;
}

std::string text_at(const json::object& event, std::initializer_list<std::string_view> path) {
  const json::value* value = find_path(event, path);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// Returns whether events of this type contain no output of a decoding step.
bool is_outside(std::string_view type) {
  constexpr std::array<std::string_view, 5> kTypes{"message_start", "ping", "response.created",
                                                   "response.in_progress", "error"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

bool is_last(std::string_view type) {
  return type == "message_stop" || type == "response.completed" || type == "response.incomplete";
}

bool reports_failure(std::string_view type, const json::object& event) {
  if (type == "response.failed") return true;
  const std::string error = text_at(event, {"error", "type"});
  return type == "error" && (error == "api_error" || error == "overloaded_error");
}

}  // namespace

std::string ResumableStream::named_event(std::string_view text) {
  std::optional<json::object> event = json_of(text);
  if (!event) return std::string(text);
  const std::string type = text_at(*event, {"type"});
  if ((failed_ = reports_failure(type, *event))) return "";
  note_start(*event);
  const bool ends_step = note_tokens(*event);
  const bool outside = is_outside(type);
  knows_tokens_ = knows_tokens_ && (outside || shows_steps_) && held_.size() <= kHeldBytesMax;
  ended_ = is_last(type);
  continue_numbers(*event);
  const bool changed = migrated_ || (ends_step && !shows_ids_);
  held_ += changed ? http::sse_event(type, exact_json_text(*event)) : std::string(text);
  if (knows_tokens_ && !outside && !ends_step && !ended_) return "";
  sent_ = number_;
  return std::exchange(held_, {});
}

// Stores the id and the creation time, which all events of a response must share.
void ResumableStream::note_start(const json::object& event) {
  if (begun()) return;
  id_ = text_at(event, {"message", "id"});
  if (id_.empty()) id_ = text_at(event, {"response", "id"});
  const json::value* created = find_path(event, {"response", "created_at"});
  if (created && created->is_int64()) created_ = created->get_int64();
}

// Stores the event's token ids. Returns whether the event has any.
bool ResumableStream::note_tokens(json::object& event) {
  const json::value* ids = event.if_contains("token_ids");
  if (!ids || !ids->is_array()) return false;
  shows_steps_ = true;
  for (const json::value& id : ids->get_array()) tokens_.push_back(id.is_int64() ? id.get_int64() : -1);
  if (!shows_ids_) event.erase("token_ids");
  return true;
}

void ResumableStream::continue_numbers(json::object& event) {
  if (json::value* number = event.if_contains("sequence_number"); number && number->is_int64()) {
    if (migrated_) *number = number_;
    number_ = number->get_int64() + 1;
  }
  if (json::value* response = event.if_contains("response"); migrated_ && response && response->is_object()) {
    response->get_object()["id"] = id_;
    response->get_object()["created_at"] = created_;
  }
}

}  // namespace octavo::fleet
