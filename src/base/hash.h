// 128-bit hashes, used as identities of prefix-cache blocks, adapters and salts.
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

// Hash function for hash tables. It takes some bits, because they are already uniform.
struct HashOfHash {
  std::size_t operator()(const Hash128& h) const { return static_cast<std::size_t>(h.low); }
};

enum class HashAlgorithm : std::uint8_t {
  xxh3_128,  // fast; depends on the seed; not collision-resistant if the seed is known
  sha256,    // first 128 bits of SHA-256 over seed and bytes; slower; collision-resistant
};

Hash128 hash_bytes(HashAlgorithm algorithm, std::span<const std::byte> bytes, std::uint64_t seed);

// A random seed from the operating system. Other processes cannot predict hashes that use it.
std::uint64_t secret_seed();

}  // namespace octavo
