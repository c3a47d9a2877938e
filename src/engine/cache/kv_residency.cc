#include "engine/cache/kv_residency.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace octavo {
namespace {

constexpr std::uint64_t kSeed = 0x5ca1ab1e;

double seconds(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(to_us - from_us) * 1e-6;
}

}  // namespace

KvResidency::KvResidency(double sample, std::function<std::int64_t()> clock)
    : sample_(sample), clock_(std::move(clock)) {}

void KvResidency::allocated(BlockId block) {
  // If an earlier sample of this block was never evicted, because its content was not cached, the sample is
  // dropped.
  sampled_.erase(block);
  const double drawn = static_cast<double>(random_bits(kSeed, ++blocks_) >> 11) * 0x1p-53;
  if (drawn < sample_) sampled_[block] = {.allocated_us = clock_()};
}

void KvResidency::acquired(BlockId block) {
  const auto found = sampled_.find(block);
  if (found == sampled_.end()) return;
  Times& times = found->second;
  times.used_us[times.uses++ % kUsesMax] = clock_();
}

void KvResidency::evicted(BlockId block) {
  const auto found = sampled_.find(block);
  if (found == sampled_.end()) return;
  const Times times = found->second;
  sampled_.erase(found);
  const std::int64_t now = clock_();
  const auto used = [&](std::size_t use) { return times.used_us[use % kUsesMax]; };
  const std::int64_t last_us = times.uses > 0 ? used(times.uses - 1) : times.allocated_us;
  stats_.lifetime.observe(seconds(times.allocated_us, now));
  stats_.idle_before_evict.observe(seconds(last_us, now));
  const std::size_t first = times.uses - std::min(times.uses, kUsesMax);
  for (std::size_t use = first + 1; use < times.uses; ++use)
    stats_.reuse_gap.observe(seconds(used(use - 1), used(use)));
}

}  // namespace octavo
