// The cached part of a prompt at each endpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// The memory tier of a block at an endpoint.
enum class Tier : std::uint8_t { device, host, disk };

// Number of cached blocks from the start of the prompt, without gaps. Each block counts once, in its fastest
// tier.
struct Hits {
  std::uint32_t device = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;

  std::uint32_t blocks() const { return device + host + disk; }
  bool operator==(const Hits&) const = default;
};

// Filled for each request. Reuse one object to avoid allocations.
struct Overlap {
  int block_size = 1;               // tokens in a block
  std::uint32_t prompt_blocks = 0;  // number of blocks of the request's prompt
  bool cached = true;               // false: hits only show the chosen endpoint, which has no blocks yet
  // Value of a block in each tier for scorers; a block on the device has 1.
  double host_weight = 1, disk_weight = 1;
  std::vector<Hits> hits = {};           // [EndpointId], up to the last endpoint with hits
  std::vector<EndpointId> holders = {};  // endpoints with hits, in arbitrary order

  Hits of(EndpointId id) const { return id < hits.size() ? hits[id] : Hits{}; }
  // The cached fraction of the prompt at the endpoint, weighted by tier.
  double share(EndpointId id) const {
    const Hits found = of(id);
    const double worth = found.device + host_weight * found.host + disk_weight * found.disk;
    return prompt_blocks > 0 ? worth / prompt_blocks : 0;
  }
  Hits& at(EndpointId id);  // entry of the endpoint; grows the table. The caller adds the id to holders.

  // Empties the object, without freeing memory.
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
