// Result of a prefix lookup: the part of a prompt that each endpoint has cached. Scorers read it.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

enum class Tier : std::uint8_t { device, host, disk };

// Number of blocks in the endpoint's longest cached prefix of the prompt. Each block counts once, in its
// fastest tier.
struct Hits {
  std::uint32_t device = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;

  std::uint32_t blocks() const { return device + host + disk; }
  bool operator==(const Hits&) const = default;
};

// Result of a lookup. Callers reuse one object to avoid allocations.
struct Overlap {
  int block_size = 1;  // tokens per block
  std::uint32_t prompt_blocks = 0;
  // false: the hits are predictions of BurstPrefixProducer, not blocks that the endpoint has cached
  bool cached = true;
  // Weights of a block in host memory and of a block on disk. A block on the device has weight 1.
  double host_weight = 1, disk_weight = 1;
  std::vector<Hits> hits = {};           // [EndpointId], up to the last endpoint with hits
  std::vector<EndpointId> holders = {};  // endpoints with hits, in arbitrary order

  Hits of(EndpointId id) const { return id < hits.size() ? hits[id] : Hits{}; }
  // Returns the cached fraction of the prompt at the endpoint. A block in host memory or on disk counts as
  // host_weight or disk_weight blocks.
  double share(EndpointId id) const {
    const Hits found = of(id);
    const double worth = found.device + host_weight * found.host + disk_weight * found.disk;
    return prompt_blocks > 0 ? worth / prompt_blocks : 0;
  }
  // Adds entries to `hits` if needed. The caller adds the id to `holders`.
  Hits& at(EndpointId id);

  void clear();
};

inline Hits& Overlap::at(EndpointId id) {
  if (id >= hits.size()) hits.resize(id + std::size_t{1});
  return hits[id];
}

inline void Overlap::clear() {
  for (const EndpointId id : holders) hits[id] = {};
  holders.clear();
  prompt_blocks = 0;
}

}  // namespace octavo::fleet
