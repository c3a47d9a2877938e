#include "hub/backoff.h"

#include <algorithm>
#include <thread>

#include "base/log.h"

namespace octavo::hub {
namespace {

constexpr int kTriesMax = 6;
constexpr std::chrono::milliseconds kLongest{60'000};

}  // namespace

Result<> Backoff::wait(const Error& failure) {
  if (failure.code != ErrorCode::unavailable) return std::unexpected(failure);
  if (tries_ == kTriesMax)
    return std::unexpected(
        Error{ErrorCode::io, fmt::format("{} (tried {} times)", failure.message, tries_), failure.field});
  const auto pause = std::min(std::max(pause_, server_pause_), kLongest);
  log_warning("{}; retrying in {:.1f} s", failure.message, std::chrono::duration<double>(pause).count());
  std::this_thread::sleep_for(pause);
  ++tries_;
  pause_ *= 2;
  server_pause_ = {};
  return {};
}

}  // namespace octavo::hub
