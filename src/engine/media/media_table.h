// Cache of the encoded images and sounds of an engine, and queue of the requests whose media are not
// encoded yet. The engine loop calls it.
//
// The encoder runs between steps, a few layers of one image at a time, so that decoding pauses only
// briefly. Media are identified by a digest, so an image that another message or client sends again is not
// encoded again. The images of unfinished requests stay in memory, because a preempted sequence needs them
// again. All other images are freed when memory is needed, least recently used first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/execute/executor.h"
#include "engine/loop/answer.h"
#include "request/engine_stats.h"

namespace octavo {

class MediaTable {
 public:
  // `tokens_max` is the maximum number of media tokens in memory. It must be at least the number of media
  // tokens of any single request. With cross attention, each part counts as one token, and slots are below
  // tokens_max. `encoder` is null for models without media.
  MediaTable(MediaEncoder* encoder, std::int64_t tokens_max) : encoder_(encoder), tokens_max_(tokens_max) {}

  // All functions below must be called on the engine thread.

  // Adds a request with media to the queue. Requests are served in order. If there is not enough memory for
  // a request, all later requests wait until earlier ones have ended.
  void add(std::shared_ptr<Accepted> accepted) { waiting_.push_back(std::move(accepted)); }

  // A request whose media are all encoded (Accepted::encoded), or the error that ends the request.
  struct Ready {
    RequestId id;
    Result<> result;
  };
  // Limits of one advance() call, which encodes at most one part. The call encodes a slice of `rows` rows
  // (MediaEncoder::advance_media), and further slices if they will probably end within the given time.
  struct Slices {
    int rows = 0;
    std::int64_t until_us = 0;
  };
  std::optional<Ready> advance(const Slices& slices);
  bool encoding() const { return !waiting_.empty() && !blocked_; }
  const MediaCacheStats& stats() const { return stats_; }

 private:
  struct Entry {
    Hash128 digest;
    std::shared_ptr<const EncodedMedia> image;  // null: the slot is free
    std::int64_t tokens = 0;
    std::uint64_t last_used = 0;
  };

  struct Begun {
    Hash128 digest;
    int slot = 0;
    int tokens = 0;
  };

  Entry* find(Hash128 digest);
  Entry* entry_for(std::int64_t tokens);
  Result<bool> encode(const MediaPart& part, const Slices& slices);
  bool advance_encoder(const Slices& slices);

  MediaEncoder* const encoder_;
  const std::int64_t tokens_max_;
  std::int64_t tokens_ = 0;
  std::uint64_t uses_ = 0;
  bool blocked_ = false;        // whether the first waiting request needs memory that running requests use
  std::vector<Entry> entries_;  // [slot]
  std::optional<Begun> begun_;
  MediaCacheStats stats_;
  std::deque<std::weak_ptr<Accepted>> waiting_;  // pointers to aborted requests are expired
};

}  // namespace octavo
