#include "fleet/flow/reclamation.h"

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

constexpr double kVictimsMax = 2;
constexpr std::int64_t kGraceUs = 500'000;
constexpr std::int64_t kTimeoutUs = 10'000'000;

}  // namespace

void Reclamation::started(std::uint64_t id, int priority, std::int64_t now_us) {
  const Key key{priority, -now_us, id};
  if (running_.emplace(id, key).second && priority < 0) evictable_.insert(key);
}

void Reclamation::ended(std::uint64_t id, std::int64_t now_us) {
  const auto running = running_.find(id);
  if (running == running_.end()) return;
  evictable_.erase(running->second);
  running_.erase(running);
  if (leaving_.erase(id) > 0) quiet_until_us_ = now_us + kGraceUs;
}

std::vector<std::uint64_t> Reclamation::victims(double saturation, std::span<const BlockedBand> blocked,
                                                std::int64_t now_us) {
  if (std::erase_if(leaving_, [&](const auto& one) { return now_us - one.second >= kTimeoutUs; }) > 0)
    quiet_until_us_ = now_us + kGraceUs;
  if (evictable_.empty() || !leaving_.empty() || now_us < quiet_until_us_) return {};
  const auto band = std::ranges::find_if(blocked, [](const BlockedBand& b) { return b.ceiling > 0; });
  if (band == blocked.end() || saturation < band->ceiling) return {};
  const double mean = saturation / static_cast<double>(running_.size());
  const double wanted = std::clamp(std::ceil((saturation - band->ceiling) / mean), 1.0, kVictimsMax);
  std::vector<std::uint64_t> ids;
  while (!evictable_.empty() && static_cast<double>(ids.size()) < wanted &&
         evictable_.begin()->priority < band->priority) {
    ids.push_back(evictable_.begin()->id);
    leaving_.emplace(ids.back(), now_us);
    evictable_.erase(evictable_.begin());
  }
  return ids;
}

}  // namespace octavo::fleet
