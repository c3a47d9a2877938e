// Which pieces of the past a prefix consists of, and what they are called: a block of each cache group as far as what
// comes behind still sees it, and the states of recurrent layers at its end.
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

// Names of a prompt's full blocks that all processes agree on: of all tokens up to a block's end, and
// identity and extras as PrefixHasher has them.
std::vector<Hash128> transfer_keys(std::span<const TokenId> tokens, Hash128 identity, int block_size,
                                   std::span<const Hash128> extras = {});

// Parts of the past at the end of a block: cache group `part`; behind the groups, pieces of the states.
struct KvPiece {
  int block = 0;  // of the prompt
  int part = 0;
};

// Where an engine has a piece.
struct KvPlace {
  int part = 0;
  std::int32_t number = 0;  // of the block in its cache, or of the slot of states

  bool operator==(const KvPlace&) const = default;
};

inline int group_count(const BlockFormat& format) { return static_cast<int>(format.windows.size()); }

// Of a prefix of `end` blocks, those of its blocks [begin, end), block after block: what comes behind `begin` blocks
// that are there already is the end of what comes behind none.
std::vector<KvPiece> pieces_of(const BlockFormat& format, int begin, int end);

// key: of the block (KvPrompt::keys).
inline Hash128 piece_key(Hash128 key, int part) {
  return {.low = key.low, .high = key.high ^ static_cast<std::uint64_t>(part) * 0x9E3779B97F4A7C15u};
}
// keys: of the prompt's blocks.
std::vector<Hash128> piece_keys(std::span<const KvPiece> pieces, std::span<const Hash128> keys);

// Of which of some pieces it is known that they are there.
using KnownPieces = std::function<std::vector<bool>(std::span<const Hash128>)>;
// The longest prefix, in blocks, of which all pieces are there.
int longest_prefix(const BlockFormat& format, std::span<const Hash128> keys, const KnownPieces& known);

}  // namespace octavo
