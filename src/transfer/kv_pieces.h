// Pieces of a cached prefix and their keys: the blocks of each cache group that later tokens still see, and
// the states of recurrent layers at its end.
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

// Keys of a prompt's full blocks, equal in all processes: hashes of all tokens up to a block's end, with
// identity and extras as in PrefixHasher.
std::vector<Hash128> transfer_keys(std::span<const TokenId> tokens, Hash128 identity, int block_size,
                                   std::span<const Hash128> extras = {});

// A piece at the end of a block: cache group `part`, or, after the groups, a piece of the states.
struct KvPiece {
  int block = 0;  // index in the prompt
  int part = 0;
};

// Location of a piece in an engine.
struct KvPlace {
  int part = 0;
  std::int32_t number = 0;  // number of the cache block, or of the state slot

  bool operator==(const KvPlace&) const = default;
};

inline int group_count(const BlockFormat& format) { return static_cast<int>(format.windows.size()); }

// Pieces of the blocks [begin, end) of a prefix of `end` blocks, block after block. If `begin` blocks are
// already available, these are the last pieces of the full list.
std::vector<KvPiece> pieces_of(const BlockFormat& format, int begin, int end);

// key: the block's key (KvPrompt::keys).
inline Hash128 piece_key(Hash128 key, int part) {
  return {.low = key.low, .high = key.high ^ static_cast<std::uint64_t>(part) * 0x9E3779B97F4A7C15u};
}
// keys: the keys of the prompt's blocks.
std::vector<Hash128> piece_keys(std::span<const KvPiece> pieces, std::span<const Hash128> keys);

// For each key, whether the piece is known to be stored.
using KnownPieces = std::function<std::vector<bool>(std::span<const Hash128>)>;
// Length in blocks of the longest prefix whose pieces are all stored.
int longest_prefix(const BlockFormat& format, std::span<const Hash128> keys, const KnownPieces& known);

}  // namespace octavo
