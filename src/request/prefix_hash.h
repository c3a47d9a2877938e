// Keys of prefixes: a hash for each full block of tokens, which covers the block and all tokens before it.
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
  std::uint64_t seed = 0;  // secret_seed(), or a fixed seed if several processes must compute the same hashes
  // The hash function; tests replace it with one that has collisions.
  Hash128 (*hash)(HashAlgorithm, std::span<const std::byte>, std::uint64_t) = &hash_bytes;
};

class PrefixHasher {
 public:
  explicit PrefixHasher(PrefixHashOptions options, int block_size);

  // Extends `keys` to one key per full block of `tokens`: key[i] = H(key[i-1], tokens of block i). `identity`
  // (CacheIdentity::digest) precedes the first block. extras (media_identities): additional bytes to hash
  // with each of the first blocks. Existing keys are not computed again.
  void extend(std::span<const TokenId> tokens, Hash128 identity, std::vector<Hash128>& keys,
              std::span<const Hash128> extras = {}) const;

 private:
  PrefixHashOptions options_;
  std::size_t block_size_;
};

}  // namespace octavo
