// The images and sounds that an engine has encoded, and the requests that wait for an encoding.
//
// The encoder runs between two steps, for some layers of one image at a time, so that decoding pauses only
// briefly. A digest identifies an image, so an image that a later message or another client sends again is
// not encoded again. Images of unfinished requests stay in memory, because a preempted sequence needs them
// again. Other images are freed when memory is needed, the least recently used one first.
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
  // tokens_max: maximum number of tokens of all media in memory, at least those of one request. If media are
  // not part of the prompt (cross attention), each counts as one token; slots are below tokens_max. encoder:
  // null for models without media.
  MediaTable(MediaEncoder* encoder, std::int64_t tokens_max) : encoder_(encoder), tokens_max_(tokens_max) {}

  // All functions below are called on the engine's thread.

  // Adds a request with media. Requests are served in order: if memory does not suffice, later requests wait
  // until earlier ones have ended.
  void add(std::shared_ptr<Accepted> accepted) { waiting_.push_back(std::move(accepted)); }

  // A request whose images are all encoded (Accepted::encoded), or the error that ends the request.
  struct Ready {
    RequestId id;
    Result<> result;
  };
  // Limits of one advance() call. It encodes at most one part: a slice of `rows` rows
  // (MediaEncoder::advance_media), and more slices if they will probably end within the given time.
  struct Slices {
    int rows = 0;
    std::int64_t until_us = 0;
  };
  std::optional<Ready> advance(const Slices& slices);
  // Returns true if advance() has work.
  bool encoding() const { return !waiting_.empty() && !blocked_; }
  const MediaCacheStats& stats() const { return stats_; }

 private:
  struct Entry {
    Hash128 digest;
    std::shared_ptr<const EncodedMedia> image;  // null if the slot is free
    std::int64_t tokens = 0;
    std::uint64_t last_used = 0;
  };

  // The image that the executor is encoding.
  struct Begun {
    Hash128 digest;
    int place = 0;
    int tokens = 0;
  };

  Entry* find(Hash128 digest);
  Entry* place_for(std::int64_t tokens);
  Result<bool> encode(const MediaPart& part, const Slices& slices);
  bool advance_encoder(const Slices& slices);

  MediaEncoder* const encoder_;
  const std::int64_t tokens_max_;
  std::int64_t tokens_ = 0;
  std::uint64_t uses_ = 0;
  bool blocked_ = false;        // whether the first waiting request needs memory that running requests use
  std::vector<Entry> entries_;  // by slot
  std::optional<Begun> begun_;
  MediaCacheStats stats_;
  std::deque<std::weak_ptr<Accepted>> waiting_;  // expired pointers are aborted requests
};

}  // namespace octavo
