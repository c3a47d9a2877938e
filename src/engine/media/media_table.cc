#include "engine/media/media_table.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace octavo {

MediaTable::Entry* MediaTable::find(Hash128 digest) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.image && entry.digest == digest; });
  return found == entries_.end() ? nullptr : &*found;
}

// Returns a free slot. Frees the least recently used media until there is enough memory. Returns null if
// running requests use all remaining media.
MediaTable::Entry* MediaTable::entry_for(std::int64_t tokens) {
  while (tokens_ + tokens > tokens_max_) {
    Entry* oldest = nullptr;
    for (Entry& entry : entries_)
      if (entry.image && entry.image.use_count() == 1 && (!oldest || entry.last_used < oldest->last_used))
        oldest = &entry;
    if (oldest == nullptr) return nullptr;
    encoder_->drop_media(oldest->image->slot);
    tokens_ -= oldest->tokens;
    *oldest = {};
  }
  const auto free = std::ranges::find_if(entries_, [](const Entry& entry) { return !entry.image; });
  return free != entries_.end() ? &*free : &entries_.emplace_back();
}

// Encodes a part. Returns false if the part is not complete yet or must wait for memory. Cancels an
// unfinished part if no request needs it.
Result<bool> MediaTable::encode(const MediaPart& part, const Slices& slices) {
  if (!begun_ || begun_->digest != part.digest) {
    begun_.reset();
    const int tokens = std::max(1, part.tokens);
    const Entry* const entry = entry_for(tokens);
    blocked_ = entry == nullptr;
    if (blocked_) return false;
    const int slot = static_cast<int>(entry - entries_.data());
    if (encoder_ == nullptr)
      return failure(ErrorCode::unsupported, "images are not supported on this device: use --device cpu");
    TRY_VOID(encoder_->begin_media(slot, part));
    begun_ = {part.digest, slot, tokens};
  }
  if (!advance_encoder(slices)) return false;
  entries_[static_cast<std::size_t>(begun_->slot)] = {
      .digest = begun_->digest,
      .image = std::make_shared<const EncodedMedia>(EncodedMedia{begun_->slot}),
      .tokens = begun_->tokens};
  tokens_ += begun_->tokens;
  begun_.reset();
  return true;
}

bool MediaTable::advance_encoder(const Slices& slices) {
  for (std::int64_t began_us = now_us();;) {
    if (encoder_->advance_media(slices.rows)) return true;
    const std::int64_t ended_us = now_us();
    if (2 * ended_us - began_us > slices.until_us) return false;
    began_us = ended_us;
  }
}

std::optional<MediaTable::Ready> MediaTable::advance(const Slices& slices) {
  blocked_ = false;
  bool encoded = false;
  while (!waiting_.empty()) {
    const std::shared_ptr<Accepted> accepted = waiting_.front().lock();
    if (!accepted) {
      waiting_.pop_front();
      continue;
    }
    const auto done = [&](Result<> result) {
      waiting_.pop_front();
      return Ready{accepted->id, std::move(result)};
    };
    const std::vector<MediaPart>& parts = accepted->request.media;
    const std::size_t next = accepted->encoded.size();
    if (next == parts.size()) return done({});
    Entry* entry = find(parts[next].digest);
    if (entry == nullptr && encoded) return std::nullopt;
    if (entry == nullptr) {
      const std::int64_t began_ns = now_ns();
      const Result<bool> made = encode(parts[next], slices);
      accepted->shared_cost[CostUnit::encode_nanoseconds] += now_ns() - began_ns;
      if (!made) return done(std::unexpected(made.error()));
      if (!*made) return std::nullopt;
      encoded = true;
      entry = find(parts[next].digest);
    } else {
      ++stats_.hits;
    }
    ++stats_.queries;
    entry->last_used = ++uses_;
    accepted->encoded.push_back(entry->image);
    accepted->request.media[next].bytes = {};
  }
  return std::nullopt;
}

}  // namespace octavo
