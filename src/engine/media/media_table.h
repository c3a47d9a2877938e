// The images, or sounds, that an engine has encoded, and the requests that wait for theirs.
//
// The encoder runs between two steps, for some layers of one image at a time: answers of others stop for no
// longer than that. An image is known by its digest, so that one that comes again, in the next turn of a
// conversation or for somebody else, is not encoded again. Images of unfinished requests stay, since a
// preempted sequence needs them again; of the others the one that was used longest ago goes first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/execute/executor.h"
#include "engine/loop/answer.h"

namespace octavo {

class MediaTable {
 public:
  // tokens_max: of all images in memory, at least as many as one request may have. A sound or a prompt counts
  // as one: places are below tokens_max where there is nothing else. encoder: null for models without media.
  MediaTable(MediaEncoder* encoder, std::int64_t tokens_max) : encoder_(encoder), tokens_max_(tokens_max) {}

  // All below: on the engine's thread.

  // A request with images. Requests take turns: where memory is short, those behind wait until others have
  // ended.
  void add(std::shared_ptr<Accepted> accepted) { waiting_.push_back(std::move(accepted)); }

  // A request whose images are all there now (Accepted::encoded), or the error for it.
  struct Ready {
    RequestId id;
    Result<> result;
  };
  // Runs the encoder on one part at most: a slice of so many rows (MediaEncoder::advance_media), and further
  // ones that are likely to end by then.
  struct Slices {
    int rows = 0;
    std::int64_t until_us = 0;
  };
  std::optional<Ready> advance(const Slices& slices);
  // Whether advance() has something to do.
  bool encoding() const { return !waiting_.empty() && !blocked_; }

 private:
  struct Entry {
    Hash128 digest;
    std::shared_ptr<const EncodedMedia> image;  // null: the place is free
    std::int64_t tokens = 0;
    std::uint64_t last_used = 0;
  };

  // The image that the executor has begun with.
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
  bool blocked_ = false;        // the first that waits needs memory of requests that run
  std::vector<Entry> entries_;  // by place
  std::optional<Begun> begun_;
  std::deque<std::weak_ptr<Accepted>> waiting_;  // aborted ones are gone
};

}  // namespace octavo
