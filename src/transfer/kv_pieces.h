// Keys of the pieces that connectors transfer. A piece is a KV block of one cache group, or a part of the
// recurrent states. The pieces of a prefix are those that later tokens need: for a sliding window only the
// last blocks, for recurrent layers only the state at the end of the prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/block_pool.h"
#include "request/sampling_params.h"
#include "transfer/block_format.h"

namespace octavo {

// Returns the keys of a prompt's full blocks. A key is a hash of all tokens up to the end of the block, of
// `identity` and of `extras` (PrefixHasher). It is equal in all processes.
std::vector<Hash128> transfer_keys(std::span<const TokenId> tokens, Hash128 identity, int block_size,
                                   std::span<const Hash128> extras = {});

// part: index of the block's cache group. group_count() + i: piece i of the recurrent states.
struct KvPiece {
  int block = 0;  // index of the block in the prompt
  int part = 0;
};

// Location of a piece in an engine's cache.
struct KvLocation {
  int part = 0;
  std::int32_t number = 0;  // index of the cache block or of the state slot

  bool operator==(const KvLocation&) const = default;
};

inline int group_count(const BlockFormat& format) { return static_cast<int>(format.windows.size()); }

// Returns the pieces of a prefix of `end` blocks, except pieces of the first `begin` blocks, ordered by
// block.
std::vector<KvPiece> pieces_of(const BlockFormat& format, int begin, int end);

// key: key of the block that the piece belongs to (KvPrompt::keys).
inline Hash128 piece_key(Hash128 key, int part) {
  return {.low = key.low, .high = key.high ^ static_cast<std::uint64_t>(part) * 0x9E3779B97F4A7C15u};
}
// keys: keys of the prompt's blocks.
std::vector<Hash128> piece_keys(std::span<const KvPiece> pieces, std::span<const Hash128> keys);

// Returns for each key whether the piece is known to be stored.
using KnownPieces = std::function<std::vector<bool>(std::span<const Hash128>)>;
// Returns the length in blocks of the longest prefix whose pieces (pieces_of) are all stored.
int longest_prefix(const BlockFormat& format, std::span<const Hash128> keys, const KnownPieces& known);

}  // namespace octavo
