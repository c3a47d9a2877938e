// Prefix keys of a prompt: one hash per full block. A key covers the tokens of its block and all earlier
// tokens, so equal keys mean equal prefixes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "request/sampling_params.h"

namespace octavo {

inline constexpr int kBlockSizeMax = 1024;  // maximum number of tokens in a block

struct PrefixHashOptions {
  HashAlgorithm algorithm = HashAlgorithm::xxh3_128;
  // random (secret_seed()), or a fixed value if several processes must compute the same hashes
  std::uint64_t seed = 0;
  // Tests replace the hash function with one that has collisions.
  Hash128 (*hash)(HashAlgorithm, std::span<const std::byte>, std::uint64_t) = &hash_bytes;
};

class PrefixHasher {
 public:
  explicit PrefixHasher(PrefixHashOptions options, int block_size);

  // Extends `keys` to one key per full block of `tokens`: key[i] = H(key[i-1], tokens of block i).
  // `identity` (CacheIdentity::digest) takes the role of key[-1]. Element i of `extras` (media_identities)
  // is hashed together with block i. Keeps the keys that `keys` already contains.
  void extend(std::span<const TokenId> tokens, Hash128 identity, std::vector<Hash128>& keys,
              std::span<const Hash128> extras = {}) const;

 private:
  PrefixHashOptions options_;
  std::size_t block_size_;
};

}  // namespace octavo
