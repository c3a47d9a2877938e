#include "fleet/discover/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {
namespace {

constexpr int kPauseMs = 500;  // pause after the first failure; each consecutive failure doubles it

}  // namespace

Follower::Follower(FollowerOptions options, std::function<Result<>()> once)
    : options_(std::move(options)), once_(std::move(once)), thread_([this] { run(); }) {}

Follower::~Follower() { stop(); }

void Follower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
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
      log_warning("{}: {}; {}", options_.source, done.error().message, options_.while_failing);
    if (done && failing) log_info("{}: connected again", options_.source);
    pause_ms = std::min(failing ? 2 * pause_ms : kPauseMs, options_.pause_ms_max);
    if (done) pause_ms = options_.interval_ms;
    failing = !done;
  }
}

}  // namespace octavo::fleet
