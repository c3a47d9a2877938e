#include "fleet/pick/burst_gate.h"

#include <utility>

namespace octavo::fleet {

void BurstGate::join(const RouteRequest& request, const Subset& subset, Then then) {
  const BurstPrefixProducer& burst = *balancer_.burst();
  std::vector<PrefixKey> keys = burst.keys(request);
  const std::int64_t most = burst.options.requests_max;
  {
    const std::lock_guard lock(mutex_);
    if (most == BurstOptions::kAll || thens_.size() < static_cast<std::size_t>(most)) {
      if (endpoints_.empty() && !keys.empty()) endpoints_ = balancer_.burst_endpoints(request, subset);
      prompts_.push_back(std::move(keys));
      thens_.push_back(std::move(then));
      if (thens_.size() > 1) return;
      return loop_.post(
          [this, ms = static_cast<int>(burst.options.window_ms)] { loop_.after(ms, [this] { seal(); }); });
    }
  }
  then(kNoEndpoint);
}

void BurstGate::seal() {
  std::unique_lock lock(mutex_);
  const auto prompts = std::exchange(prompts_, {});
  const auto thens = std::exchange(thens_, {});
  const auto endpoints = std::exchange(endpoints_, {});
  lock.unlock();
  const auto homes = place_burst(prompts, endpoints, balancer_.burst()->options);
  for (std::size_t i = 0; i < thens.size(); ++i) thens[i](homes[i]);
}

}  // namespace octavo::fleet
