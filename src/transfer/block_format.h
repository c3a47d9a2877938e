// A KV block outside its engine: a header that says what it is, then all layers of its cache group, each as
// kernels/kv_exchange.h lays it out. The states of recurrent layers at the end of a block, f32, all layers one
// behind the other, travel in pieces of the size of a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace octavo {

// Of all blocks of an engine. Two engines exchange blocks when theirs are equal.
struct BlockFormat {
  std::string fingerprint{};  // of the model: its files, and how its matrices were loaded
  std::string dtype{};        // of keys and values
  int block_size = 0;         // tokens
  std::int64_t bytes = 0;     // of a piece: a block, all layers of the largest cache group
  // Of each cache group, tokens; 0: all of them. A group that is smaller than the largest fills its pieces up.
  std::vector<int> windows{0};
  int state_pieces = 0;  // that the states of recurrent layers take; the last is filled up
  // How the bytes of a block are laid out: planes one after the other, each of block_size tokens. Not part of
  // what two engines compare: it follows from the model. Empty: they end with the block in another way.
  struct Planes {
    int count = 0;
    int token_bytes = 0;

    bool operator==(const Planes&) const = default;
  };
  std::vector<Planes> planes{};

  bool operator==(const BlockFormat&) const = default;

  // From block to block where several stand in a row, headers included.
  std::size_t stride() const;
  // Of all fields: what a block's header says.
  Hash128 digest() const;
};

// What differs, for people: "model", "dtype", ...; "" where nothing does.
std::string difference(const BlockFormat& a, const BlockFormat& b);

// The part of a packed block that holds keys and values. `packed`: format.stride() bytes.
std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed);
std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed);

// Of a packed block that is filled up to a multiple of `alignment`, a power of two.
std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment);

// Room for that, at an address that is such a multiple, too: the calling thread's own until it calls again.
std::span<std::byte> packed_block(const BlockFormat& format, std::size_t alignment = 1);

// What stands before a block's contents: of which format they are (BlockFormat::digest()) and of which
// tokens, how many bytes, and their checksum.
using BlockHeader = std::array<std::byte, 64>;
BlockHeader header_of(Hash128 format, Hash128 key, std::span<const std::byte> contents);
// Errors: as those of verify() below.
Result<> verify(const BlockHeader& header, Hash128 format, Hash128 key, std::span<const std::byte> contents);

// Writes the header when the contents are there. key: chained hash of all tokens up to the block's end
// (transfer_keys).
void seal(const BlockFormat& format, Hash128 key, std::span<std::byte> packed);

// Errors: mismatch of format or key (invalid_argument), a checksum that is wrong or no header (corrupt).
Result<> verify(const BlockFormat& format, Hash128 key, std::span<const std::byte> packed);

}  // namespace octavo
