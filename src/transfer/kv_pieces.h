// Pieces of a cached prefix and their keys. The pieces are the blocks of each cache group to which later
// tokens attend, and the states of recurrent layers at the end of the prefix.
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

// Returns the keys of a prompt's full blocks, which are equal in all processes. A key is a hash of all tokens
// up to the block's end, with identity and extras as in PrefixHasher.
std::vector<Hash128> transfer_keys(std::span<const TokenId> tokens, Hash128 identity, int block_size,
                                   std::span<const Hash128> extras = {});

// A piece that belongs to a block of the prompt. part: index of the cache group; values from the number of
// groups on are pieces of the states.
struct KvPiece {
  int block = 0;  // index of the block in the prompt
  int part = 0;
};

// Location of a piece in an engine's cache.
struct KvPlace {
  int part = 0;
  std::int32_t number = 0;  // index of the cache block, or of the state slot

  bool operator==(const KvPlace&) const = default;
};

inline int group_count(const BlockFormat& format) { return static_cast<int>(format.windows.size()); }

// Returns the pieces of the blocks [begin, end) of a prefix of `end` blocks, in the order of blocks. If the
// first `begin` blocks are available already, these are the last pieces of the complete list.
std::vector<KvPiece> pieces_of(const BlockFormat& format, int begin, int end);

// Returns the key of a piece. key: key of its block (KvPrompt::keys).
inline Hash128 piece_key(Hash128 key, int part) {
  return {.low = key.low, .high = key.high ^ static_cast<std::uint64_t>(part) * 0x9E3779B97F4A7C15u};
}
// Returns the keys of pieces. keys: keys of the prompt's blocks.
std::vector<Hash128> piece_keys(std::span<const KvPiece> pieces, std::span<const Hash128> keys);

// Function that returns for each key whether the piece is known to be stored.
using KnownPieces = std::function<std::vector<bool>(std::span<const Hash128>)>;
// Returns the number of blocks of the longest prefix whose pieces are all stored.
int longest_prefix(const BlockFormat& format, std::span<const Hash128> keys, const KnownPieces& known);

}  // namespace octavo
