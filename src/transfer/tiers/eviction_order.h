// Which of a tier's blocks makes room for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/hash.h"

namespace octavo {

enum class EvictionPolicy : std::uint8_t { lru, arc };
inline constexpr std::string_view kEvictionPolicyNames[] = {"lru", "arc"};

class EvictionOrder {
 public:
  virtual ~EvictionOrder() = default;

  // A new one, which nobody has used yet.
  virtual void add(Hash128 key) = 0;
  // By the prompt that it was written for, or by one that it was loaded for; where it is there.
  virtual void use(Hash128 key) = 0;
  // Takes out the one that makes room. There is one.
  virtual Hash128 evict() = 0;
  // False: it was not there.
  virtual bool remove(Hash128 key) = 0;

  virtual bool contains(Hash128 key) const = 0;
  virtual std::size_t size() const = 0;
};

// most: blocks that there is room for.
std::unique_ptr<EvictionOrder> make_eviction_order(EvictionPolicy policy, std::size_t most);

}  // namespace octavo
