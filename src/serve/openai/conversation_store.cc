#include "serve/openai/conversation_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/exact_json.h"
#include "base/hash.h"
#include "serve/openai/stored_items.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

std::string conversation_id(std::string_view prefix) {
  return fmt::format("{}_{:016x}{:016x}", prefix, secret_seed(), secret_seed());
}

json::value parsed_text(const std::string& text) {
  boost::system::error_code error;
  return parse_exact_json(text, error);
}
json::array parsed_items(const std::string& text) { return parsed_text(text).as_array(); }

json::array with_new_ids(const json::array& items) {
  return with_ids(items, [](std::string_view prefix, std::size_t) { return conversation_id(prefix); });
}

}  // namespace

json::object ConversationStore::Entry::shown() const {
  return {{"id", id},
          {"object", "conversation"},
          {"created_at", created_at},
          {"metadata", parsed_text(metadata)}};
}

Result<ConversationStore::Entry*> ConversationStore::find(const std::string& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end())
    return field_failure("conversation", ErrorCode::not_found,
                         "no conversation has this id; perhaps it was deleted");
  entries_.splice(entries_.end(), entries_, found->second);
  return &*found->second;
}

Result<> ConversationStore::set(Entry& entry, std::string metadata, std::string items) {
  const std::size_t before = entry.bytes();
  const std::size_t after =
      before - entry.metadata.size() - entry.items.size() + metadata.size() + items.size();
  if (after > bytes_max_)
    return field_failure(
        "items", ErrorCode::resource_exhausted,
        "the conversation would have {} bytes, but at most {} are stored: begin a new conversation", after,
        bytes_max_);
  entry.metadata = std::move(metadata);
  entry.items = std::move(items);
  bytes_ += after - before;
  while (bytes_ > bytes_max_) {  // never removes `entry`, which is the most recently used one
    bytes_ -= entries_.front().bytes();
    by_id_.erase(entries_.front().id);
    entries_.pop_front();
  }
  return {};
}

Result<json::object> ConversationStore::create(const json::array& items, const json::object& metadata) {
  const std::lock_guard lock(mutex_);
  Entry entry{.id = conversation_id("conv"), .metadata = "", .items = ""};
  entry.created_at =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  entries_.push_back(std::move(entry));
  Entry& added = entries_.back();
  by_id_[added.id] = std::prev(entries_.end());
  bytes_ += added.bytes();
  if (const auto done = set(added, exact_json_text(metadata), exact_json_text(with_new_ids(items))); !done) {
    bytes_ -= added.bytes();
    by_id_.erase(added.id);
    entries_.pop_back();
    return std::unexpected(done.error());
  }
  return added.shown();
}

Result<json::object> ConversationStore::show(const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY(const Entry* entry, find(id));
  return entry->shown();
}

Result<json::object> ConversationStore::set_metadata(const std::string& id, const json::object& metadata) {
  const std::lock_guard lock(mutex_);
  TRY(Entry* const entry, find(id));
  TRY_VOID(set(*entry, exact_json_text(metadata), entry->items));
  return entry->shown();
}

Result<> ConversationStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(find(id));
  bytes_ -= entries_.back().bytes();
  entries_.pop_back();
  by_id_.erase(id);
  return {};
}

Result<json::array> ConversationStore::items(const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY(const Entry* entry, find(id));
  return parsed_items(entry->items);
}

Result<json::array> ConversationStore::add(const std::string& id, const json::array& items) {
  const std::lock_guard lock(mutex_);
  TRY(Entry* const entry, find(id));
  json::array all = parsed_items(entry->items);
  json::array added = with_new_ids(items);
  all.insert(all.end(), added.begin(), added.end());
  TRY_VOID(set(*entry, entry->metadata, exact_json_text(all)));
  return added;
}

Result<> ConversationStore::remove_item(const std::string& id, const std::string& item) {
  const std::lock_guard lock(mutex_);
  TRY(Entry* const entry, find(id));
  json::array all = parsed_items(entry->items);
  const auto found =
      std::ranges::find_if(all, [&](const json::value& each) { return each.at("id").as_string() == item; });
  if (found == all.end())
    return field_failure("item_id", ErrorCode::not_found, "the conversation has no item with this id");
  all.erase(found);
  return set(*entry, entry->metadata, exact_json_text(all));
}

}  // namespace octavo::openai
