#include "fleet/observe/cache_stream.h"

#include <utility>

namespace octavo::fleet {

void CacheStream::start_over() {
  began_ = false;
  next_ = 0;
  newest_.reset();
  replaying_ = false;
  replay_helps_ = can_replay_;
  if (can_replay_) want_replay();
}

void CacheStream::resume(std::uint64_t next) {
  start_over();
  began_ = true;
  next_ = next - 1;
  want_replay();
}

void CacheStream::want_replay() {
  replaying_ = true;
  requested_ = false;
  replay_from_ = next_;
}

std::optional<std::uint64_t> CacheStream::request_from() {
  if (!replaying_ || std::exchange(requested_, true)) return std::nullopt;
  missed_ = newest_ && *newest_ >= next_;
  return next_;
}

void CacheStream::check() {
  if (!replaying_) want_replay();
}

CacheStream::Step CacheStream::live(std::uint64_t number) {
  const bool again = newest_ && number <= *newest_;
  if (again) start_over();
  newest_ = number;
  if (again && can_replay_) return Step::clear;
  if (replaying_ || number < next_) return Step::pass;
  if (number > next_ && replay_helps_) {
    want_replay();
    return Step::pass;
  }
  const bool lost = again || (began_ && number > next_);
  began_ = true;
  next_ = number + 1;
  return lost ? Step::clear_and_apply : Step::apply;
}

CacheStream::Step CacheStream::replayed(std::uint64_t number) {
  if (!replaying_ || number < next_) return Step::pass;
  const bool lost = began_ && number > next_;
  began_ = true;
  next_ = number + 1;
  return lost ? Step::clear_and_apply : Step::apply;
}

void CacheStream::replay_ended() {
  replaying_ = false;
  if (!newest_ || *newest_ < next_) return;
  // The replay does not contain the live messages that arrived during the replay. The endpoint can replay
  // them, too, unless it has just failed to replay missing messages.
  if (next_ > replay_from_ || !missed_) return want_replay();
  replay_helps_ = false;
}

}  // namespace octavo::fleet
