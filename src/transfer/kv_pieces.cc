#include "transfer/kv_pieces.h"

#include <algorithm>

#include "kv/kv_cache.h"
#include "request/prefix_hash.h"

namespace octavo {
namespace {

std::vector<bool> known_of_part(std::span<const Hash128> keys, int part, const KnownPieces& known) {
  std::vector<Hash128> names;
  names.reserve(keys.size());
  for (const Hash128& key : keys) names.push_back(piece_key(key, part));
  return known(names);
}

}  // namespace

std::vector<Hash128> transfer_keys(std::span<const TokenId> tokens, Hash128 identity, int block_size,
                                   std::span<const Hash128> extras) {
  std::vector<Hash128> keys;
  PrefixHasher({.algorithm = HashAlgorithm::sha256, .seed = 0}, block_size)
      .extend(tokens, identity, keys, extras);
  return keys;
}

std::vector<KvPiece> pieces_of(const BlockFormat& format, int begin, int end) {
  std::vector<KvPiece> pieces;
  for (int block = begin; block < end; ++block)
    for (int g = 0; g < group_count(format); ++g)
      if (block >= first_needed_block(format.windows[static_cast<std::size_t>(g)], format.block_size,
                                      end * format.block_size))
        pieces.push_back({block, g});
  for (int i = 0; begin < end && i < format.state_pieces; ++i)
    pieces.push_back({end - 1, group_count(format) + i});
  return pieces;
}

std::vector<Hash128> piece_keys(std::span<const KvPiece> pieces, std::span<const Hash128> keys) {
  std::vector<Hash128> names;
  names.reserve(pieces.size());
  for (const KvPiece& piece : pieces)
    names.push_back(piece_key(keys[static_cast<std::size_t>(piece.block)], piece.part));
  return names;
}

int longest_prefix(const BlockFormat& format, std::span<const Hash128> keys, const KnownPieces& known) {
  int end = static_cast<int>(keys.size());
  for (int g = 0; g < group_count(format); ++g) {
    if (format.windows[static_cast<std::size_t>(g)] != 0) continue;
    const std::vector<bool> stored = known_of_part(keys.first(static_cast<std::size_t>(end)), g, known);
    end = static_cast<int>(std::ranges::find(stored, false) - stored.begin());
  }
  // For windows and states, a prefix needs only the pieces near its end. If one of these is missing, a
  // shorter prefix may still be complete, because its end has other pieces.
  keys = keys.first(static_cast<std::size_t>(end));
  std::vector<std::vector<bool>> windows;
  for (int g = 0; g < group_count(format); ++g)
    windows.push_back(format.windows[static_cast<std::size_t>(g)] == 0 ? std::vector<bool>()
                                                                       : known_of_part(keys, g, known));
  const auto states =
      format.state_pieces > 0 ? known_of_part(keys, group_count(format), known) : std::vector<bool>();
  // Returns `prefix` if all its pieces are stored, otherwise a shorter prefix that does not need the missing
  // piece.
  const auto end_of = [&](int prefix) {
    for (std::size_t g = 0; g < windows.size(); ++g) {
      if (windows[g].empty()) continue;
      const int first = first_needed_block(format.windows[g], format.block_size, prefix * format.block_size);
      for (int block = prefix; block-- > first;)
        if (!windows[g][static_cast<std::size_t>(block)]) return block;
    }
    if (format.state_pieces == 0) return prefix;
    if (!states[static_cast<std::size_t>(prefix) - 1]) return prefix - 1;
    std::vector<Hash128> names;
    for (int i = 1; i < format.state_pieces; ++i)
      names.push_back(piece_key(keys[static_cast<std::size_t>(prefix) - 1], group_count(format) + i));
    const std::vector<bool> stored = known(names);
    return std::ranges::find(stored, false) == stored.end() ? prefix : prefix - 1;
  };
  for (int next; end > 0 && (next = end_of(end)) != end;) end = next;
  return end;
}

}  // namespace octavo
