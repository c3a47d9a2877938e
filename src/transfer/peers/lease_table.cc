#include "transfer/peers/lease_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace octavo {

void LeaseTable::add(std::string id, Lease lease, std::int64_t now_us) {
  const std::lock_guard lock(mutex_);
  const bool added =
      leases_.emplace(std::move(id), Entry{.lease = std::move(lease), .end_us = now_us + duration_us_})
          .second;
  CHECK(added, "two leases of one name");
}

std::vector<std::uint64_t> LeaseTable::take_ended(std::int64_t now_us) {
  std::vector<std::uint64_t> owners;
  const std::lock_guard lock(mutex_);
  for (auto found = leases_.begin(); found != leases_.end();) {
    const auto next = std::next(found);
    const Entry& entry = found->second;
    if (entry.end_us <= now_us && entry.readers == 0) {
      owners.push_back(entry.lease.owner);
      expired_ += entry.end_us != 0;
      leases_.erase(found);
    }
    found = next;
  }
  return owners;
}

std::optional<std::uint64_t> LeaseTable::end_first() {
  const std::lock_guard lock(mutex_);
  auto first = leases_.end();
  for (auto found = leases_.begin(); found != leases_.end(); ++found)
    if (found->second.readers == 0 && (first == leases_.end() || found->second.end_us < first->second.end_us))
      first = found;
  if (first == leases_.end()) return std::nullopt;
  const std::uint64_t owner = first->second.lease.owner;
  expired_ += first->second.end_us != 0;
  leases_.erase(first);
  return owner;
}

std::int64_t LeaseTable::next_end_us() const {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : leases_) next = std::min(next, entry.end_us);
  return next;
}

std::int64_t LeaseTable::expired() const {
  const std::lock_guard lock(mutex_);
  return expired_;
}

void LeaseTable::finish(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = leases_.find(id); found != leases_.end()) found->second.end_us = 0;
}

}  // namespace octavo
