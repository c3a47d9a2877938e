// Cached part of a prompt at each endpoint.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Location of a block at an endpoint.
enum class Tier : std::uint8_t { device, host, disk };

// Blocks from the prompt's first on, without a gap; each is counted once, in its best tier.
struct Hits {
  std::uint32_t device = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;

  std::uint32_t blocks() const { return device + host + disk; }
  bool operator==(const Hits&) const = default;
};

// Filled for each request; reuse one object to avoid allocations.
struct Overlap {
  int block_size = 1;                    // tokens
  std::uint32_t prompt_blocks = 0;       // of the request
  bool cached = true;                    // false: hits say where the prompt is to go, nothing is there yet
  // Value of a block in each tier to scorers, relative to one on the device.
  double host_weight = 1, disk_weight = 1;
  std::vector<Hits> hits = {};           // [EndpointId], as far as anyone has any
  std::vector<EndpointId> holders = {};  // those with any, in no order

  Hits of(EndpointId id) const { return id < hits.size() ? hits[id] : Hits{}; }
  // Share of the prompt that the endpoint holds, weighted by tier.
  double share(EndpointId id) const {
    const Hits found = of(id);
    const double worth = found.device + host_weight * found.host + disk_weight * found.disk;
    return prompt_blocks > 0 ? worth / prompt_blocks : 0;
  }
  Hits& at(EndpointId id);  // grows the table; the caller adds the id to holders

  // Empties it, without freeing memory.
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
