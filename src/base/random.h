// Random numbers without state: each value is a pure function of (seed, position, index), by Philox-4x32-10
// (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). A token drawn with the request's
// seed at its position is therefore the same in any batch, on any thread and after a preemption.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t position, std::uint64_t index = 0) {
  const auto r = philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                         static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
                        seed);
  return (std::uint64_t{r[0]} << 32) | r[1];
}

// Uniform in the open interval (0, 1), with 53 bits.
constexpr double random_unit(std::uint64_t seed, std::uint64_t position, std::uint64_t index = 0) {
  return (static_cast<double>(random_bits(seed, position, index) >> 11) + 0.5) * 0x1.0p-53;
}

}  // namespace octavo
