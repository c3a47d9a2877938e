// 128-bit hashes for identities: prefix-cache blocks, adapters, salts.
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

// For hash tables: the bits are already uniform.
struct HashOfHash {
  std::size_t operator()(const Hash128& h) const { return static_cast<std::size_t>(h.low); }
};

enum class HashAlgorithm : std::uint8_t {
  xxh3_128,  // fast, keyed by the seed; not collision-resistant if the seed is known
  sha256,    // first 128 bits of SHA-256 over seed and bytes; slower, collision-resistant
};

Hash128 hash_bytes(HashAlgorithm algorithm, std::span<const std::byte> bytes, std::uint64_t seed);

// A random seed from the operating system, so that other processes cannot predict prefix hashes.
std::uint64_t secret_seed();

}  // namespace octavo
