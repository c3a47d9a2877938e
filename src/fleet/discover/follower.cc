#include "fleet/discover/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace octavo::fleet {
namespace {

constexpr int kPauseMs = 500;  // pause after the first failure; each consecutive failure doubles it

std::string reason_of(const Result<>& done) {
  if (done) return "";
  const Error& error = done.error();
  return error.field.empty() ? error.message : fmt::format("{}: {}", error.field, error.message);
}

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

// Logs a reason only when it changes, because some failures persist.
void Follower::run() {
  std::string reason;
  int pause_ms = 0;
  while (pause(pause_ms)) {
    const std::string now = reason_of(once_());
    if (!now.empty() && now != reason)
      log_warning("{}: {}; {}", options_.source, now, options_.while_failing);
    if (now.empty() && !reason.empty()) log_info("{}: read again", options_.source);
    pause_ms = std::min(reason.empty() ? kPauseMs : 2 * pause_ms, options_.pause_ms_max);
    if (now.empty()) pause_ms = options_.interval_ms;
    reason = now;
  }
}

}  // namespace octavo::fleet
