// Rendezvous hashing (Thaler, Ravishankar 1998): sorts endpoints by a hash of the key and the endpoint's
// name. If an endpoint leaves, only its keys move to other endpoints.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "fleet/decide/decision.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

inline std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  return hash_bytes(HashAlgorithm::xxh3_128, bytes, seed).low;
}

inline std::uint64_t hash_of(std::string_view text, std::uint64_t seed) {
  return hash_of(std::as_bytes(std::span(text)), seed);
}

// Sorts by hash, and replaces the totals by the hashes. The first endpoint owns the key.
inline void order_by_key(std::uint64_t key, const FleetView& view, std::vector<Score>& ranking) {
  for (Score& score : ranking)
    score.total = static_cast<double>(hash_of(view.find(score.endpoint)->endpoint->name, key));
  std::ranges::sort(ranking, std::ranges::greater(), &Score::total);
}

}  // namespace octavo::fleet
