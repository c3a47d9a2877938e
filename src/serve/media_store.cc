#include "serve/media_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace octavo {
namespace {

using StoredMedia = openai::ChatPrompt::Media;

std::string stored_key(const std::string& client, const StoredMedia& media) {
  return fmt::format("{}\n{}\n{}", client, static_cast<int>(media.kind), media.uuid);
}

std::size_t stored_bytes(const std::string& key, const StoredMedia& media) {
  return 2 * key.size() + media.url.size() + (media.bytes ? media.bytes->size() : 0);
}

std::string_view missing_kind(openai::MediaKind kind) {
  constexpr std::string_view kNames[] = {"image", "video", "audio"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

Result<> MediaStore::restore(const std::string& client, std::vector<StoredMedia>& media) {
  const std::lock_guard lock(mutex_);
  for (auto one = media.begin(); one != media.end(); ++one) {
    if (!one->url.empty()) continue;
    const auto found = by_key_.find(stored_key(client, *one));
    if (found == by_key_.end())
      return invalid(one->field, "Cache miss for {} at index {} but data is not provided: send its url again",
                     missing_kind(one->kind),
                     std::count_if(media.begin(), one,
                                   [&](const StoredMedia& before) { return before.kind == one->kind; }));
    entries_.splice(entries_.begin(), entries_, found->second);
    one->url = found->second->media.url;
    one->bytes = found->second->media.bytes;
  }
  return {};
}

void MediaStore::keep(const std::string& client, const std::vector<StoredMedia>& media) {
  const std::lock_guard lock(mutex_);
  for (const StoredMedia& one : media) {
    if (one.uuid.empty()) continue;
    std::string key = stored_key(client, one);
    if (const auto found = by_key_.find(key); found != by_key_.end()) drop(found->second);
    const std::size_t bytes = stored_bytes(key, one);
    if (bytes > bytes_max_) continue;
    while (bytes_ + bytes > bytes_max_) drop(std::prev(entries_.end()));
    entries_.push_front({key, one});
    by_key_.emplace(std::move(key), entries_.begin());
    bytes_ += bytes;
  }
}

void MediaStore::drop(std::list<Entry>::iterator entry) {
  bytes_ -= stored_bytes(entry->key, entry->media);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace octavo
