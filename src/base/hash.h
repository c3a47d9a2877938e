// 128-bit hashes that identify prefix-cache blocks, adapters and salts.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace octavo {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Hash128&) const = default;
};

// For hash tables. The bits of a Hash128 are uniform, so its low half is a good hash.
struct HashOfHash {
  std::size_t operator()(const Hash128& h) const { return static_cast<std::size_t>(h.low); }
};

enum class HashAlgorithm : std::uint8_t {
  // fast, but collisions can be constructed if the seed is known
  xxh3_128,
  // slower, but collision-resistant; first 128 bits of SHA-256 of seed and bytes
  sha256,
};

Hash128 hash_bytes(HashAlgorithm algorithm, std::span<const std::byte> bytes, std::uint64_t seed);

// Returns a random seed from the operating system. Other processes cannot predict hashes that use it.
std::uint64_t secret_seed();

}  // namespace octavo
