#include "fleet/discover/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {
namespace {

constexpr int kPauseMs = 500;        // behind a failure; each one in a row twice as long,
constexpr int kPauseMsMax = 30'000;  // up to here

}  // namespace

Follower::Follower(std::string source, int turn_ms, std::function<Result<>()> once)
    : source_(std::move(source)), turn_ms_(turn_ms), once_(std::move(once)), thread_([this] { run(); }) {}

Follower::~Follower() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Follower::pause(int ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopped_; });
}

void Follower::run() {
  bool failing = false;
  int pause_ms = 0;
  while (pause(pause_ms)) {
    const Result<> done = once_();
    if (!done && !failing)
      log_warning("{}: {}; known endpoints stay until it answers", source_, done.error().message);
    if (done && failing) log_info("{}: answers again", source_);
    pause_ms = !failing ? kPauseMs : std::min(2 * pause_ms, kPauseMsMax);
    if (done) pause_ms = turn_ms_;
    failing = !done;
  }
}

}  // namespace octavo::fleet
