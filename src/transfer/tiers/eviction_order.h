// Eviction policies, which choose the KV block that a tier evicts next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace octavo {

enum class EvictionPolicy : std::uint8_t { lru, arc };
inline constexpr std::string_view kEvictionPolicyNames[] = {"lru", "arc"};

class EvictionOrder {
 public:
  virtual ~EvictionOrder() = default;

  // Adds a block that no prompt has used yet.
  virtual void add(Hash128 key) = 0;
  // Counts a use by a prompt. Also call it for the prompt that wrote or loaded the block. Does nothing if the
  // block is unknown.
  virtual void use(Hash128 key) = 0;
  // Removes and returns the next block to evict. There must be at least one.
  virtual Hash128 evict() = 0;
  // Returns false if the block is unknown.
  virtual bool remove(Hash128 key) = 0;

  virtual bool contains(Hash128 key) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::vector<Hash128> keys() const = 0;
};

std::unique_ptr<EvictionOrder> make_eviction_order(EvictionPolicy policy, std::size_t most);

}  // namespace octavo
