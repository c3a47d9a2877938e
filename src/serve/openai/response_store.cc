#include "serve/openai/response_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/exact_json.h"
#include "base/hash.h"
#include "serve/openai/event_log.h"
#include "serve/openai/stored_items.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

json::value parsed(const std::string& text) {
  boost::system::error_code error;
  return parse_exact_json(text, error);
}

std::string_view id_of(const json::value& item) {
  const json::value* id = item.as_object().if_contains("id");
  return id && id->is_string() ? std::string_view(id->get_string()) : "";
}

bool is_cancelled(const json::value& response) { return response.at("status") == "cancelled"; }

std::vector<std::string> item_ids(const std::string& response) {
  std::vector<std::string> ids;
  const json::value stored = parsed(response);
  for (const json::value& item : stored.at("output").as_array()) ids.emplace_back(id_of(item));
  return ids;
}

}  // namespace

void ResponseStore::begin(const std::string& id, std::string response, std::string conversation) {
  const std::lock_guard lock(mutex_);
  put({.id = id, .response = std::move(response), .conversation = std::move(conversation)});
}

void ResponseStore::start(const std::string& id, std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->made) return;
  found->second->cancel = std::move(cancel);
  set_status(*found->second, "in_progress");
}

void ResponseStore::keep_events(const std::string& id, std::shared_ptr<EventLog> events) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) found->second->events = std::move(events);
}

void ResponseStore::finish(const std::string& id, std::string response, std::string conversation) {
  std::vector<std::string> items = item_ids(response);
  const std::lock_guard lock(mutex_);
  if (forgotten_.erase(id) > 0) return;
  const auto begun = by_id_.find(id);
  std::shared_ptr<EventLog> events = begun != by_id_.end() ? begun->second->events : nullptr;
  const std::size_t event_bytes = events ? events->bytes() : 0;
  put({.id = id,
       .response = std::move(response),
       .conversation = std::move(conversation),
       .made = true,
       .items = std::move(items),
       .events = std::move(events),
       .event_bytes = event_bytes});
}

void ResponseStore::put(Entry entry) {
  if (const auto old = by_id_.find(entry.id); old != by_id_.end()) drop(old->second);
  if (entry.bytes() > bytes_max_) return;
  bytes_ += entry.bytes();
  entries_.push_back(std::move(entry));
  by_id_[entries_.back().id] = std::prev(entries_.end());
  for (const std::string& item : entries_.back().items) by_item_[item] = std::prev(entries_.end());
  while (bytes_ > bytes_max_) drop(entries_.begin());
}

void ResponseStore::set_status(Entry& entry, std::string_view status) {
  json::value response = parsed(entry.response);
  response.as_object()["status"] = status;
  bytes_ -= entry.bytes();
  entry.response = exact_json_text(response);
  bytes_ += entry.bytes();
}

void ResponseStore::drop(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  by_id_.erase(entry->id);
  for (const std::string& item : entry->items) by_item_.erase(item);
  entries_.erase(entry);
}

Result<ResponseStore::Entries::const_iterator> ResponseStore::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end())
    return field_failure("response_id", ErrorCode::not_found,
                         "no response has this id; perhaps it was deleted");
  return found->second;
}

Result<std::string> ResponseStore::response(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  TRY(const auto entry, find(id));
  return entry->response;
}

Result<std::shared_ptr<EventLog>> ResponseStore::events(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  TRY(const auto entry, find(id));
  return entry->events;
}

Result<json::array> ResponseStore::conversation(const std::string& id) const {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    TRY(const auto entry, find(id));
    if (!entry->made) return invalid("previous_response_id", "this response is not finished yet");
    text = entry->conversation;
  }
  return parsed(text).as_array();
}

Result<json::array> ResponseStore::input(const std::string& id) const {
  std::string response, conversation;
  {
    const std::lock_guard lock(mutex_);
    TRY(const auto entry, find(id));
    response = entry->response;
    conversation = entry->conversation;
  }
  json::array items = parsed(conversation).as_array();
  const std::size_t output = std::min(items.size(), parsed(response).at("output").as_array().size());
  items.erase(items.end() - static_cast<std::ptrdiff_t>(output), items.end());
  // The ids of output items are hashes of the response's id, so these ids must be hashes of another text.
  const std::string name = id + "/input_items";
  return with_ids(items, [&](std::string_view prefix, std::size_t index) {
    const Hash128 bits = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(name)), index);
    return fmt::format("{}_{:016x}{:016x}", prefix, bits.high, bits.low);
  });
}

std::string ResponseStore::response_with(const std::string& item) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_item_.find(item);
  return found == by_item_.end() ? "" : found->second->id;
}

Result<> ResponseStore::forget(const std::string& id) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    TRY_VOID(find(id));
    const auto entry = by_id_.at(id);
    if (!entry->made) {
      cancel = std::move(entry->cancel);
      forgotten_.insert(id);
    }
    drop(entry);
  }
  if (cancel) cancel();
  return {};
}

Result<std::string> ResponseStore::cancel(const std::string& id) {
  std::function<void()> cancel;
  std::string response;
  {
    const std::lock_guard lock(mutex_);
    TRY_VOID(find(id));
    Entry& entry = *by_id_.at(id);
    if (entry.made && is_cancelled(parsed(entry.response))) return entry.response;
    if (entry.made || !entry.cancel)
      return invalid("response_id", "only a background response that is still running can be cancelled");
    cancel = entry.cancel;
    set_status(entry, "cancelled");
    response = entry.response;
  }
  cancel();
  return response;
}

}  // namespace octavo::openai
