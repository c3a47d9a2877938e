// Random numbers for one decision. They depend only on the seed, so that decisions can be repeated.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace octavo::fleet {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t bits() { return random_bits(seed_, next_++); }
  double unit() { return random_unit(seed_, next_++); }  // in (0, 1)
  std::size_t below(std::size_t limit) {
    return static_cast<std::size_t>(unit() * static_cast<double>(limit));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

}  // namespace octavo::fleet
