// Format of a KV block outside of its engine: a header, then all layers of its cache group in the layout of
// kernels/kv_exchange.h. States of recurrent layers belong to the end of a block (f32, layer after layer).
// They are split into pieces of the same size as a block.
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

// Format of an engine's blocks. Two engines can exchange blocks if their formats are equal.
struct BlockFormat {
  std::string fingerprint{};  // identity of the model: its files, and the encoding of its matrices
  std::string dtype{};        // data type of keys and values
  int block_size = 0;         // tokens per block
  std::int64_t bytes = 0;     // bytes of a piece, which is a block with all layers of the largest cache group
  // Window of each cache group in tokens; 0: no window. The pieces of smaller cache groups are padded.
  std::vector<int> windows{0};
  int state_pieces = 0;  // number of pieces of recurrent states; the last one is padded
  // Layout of a block's bytes: planes one after another, each with block_size tokens. It depends only on the
  // model, so engines do not compare it. Empty: blocks have another layout.
  struct Planes {
    int count = 0;
    int token_bytes = 0;

    bool operator==(const Planes&) const = default;
  };
  std::vector<Planes> planes{};

  bool operator==(const BlockFormat&) const = default;

  // Returns the bytes from one packed block to the next, including headers.
  std::size_t stride() const;
  // Returns a hash of all compared fields, which the header of a block contains.
  Hash128 digest() const;
};

// Returns the name of the first field that differs: "model", "dtype", ...; "" if the formats are equal.
std::string difference(const BlockFormat& a, const BlockFormat& b);

// Returns the part of a packed block that contains keys and values. packed: format.stride() bytes.
std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed);
std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed);

// Returns the bytes of a packed block, padded to a multiple of `alignment` (a power of two).
std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment);

// Returns a buffer of packed_bytes() bytes with this alignment. It belongs to the calling thread and is valid
// until the thread's next call.
std::span<std::byte> packed_block(const BlockFormat& format, std::size_t alignment = 1);

// Header of a block: its format (BlockFormat::digest()), the hash of its tokens, its size and its checksum.
using BlockHeader = std::array<std::byte, 64>;
BlockHeader header_of(Hash128 format, Hash128 key, std::span<const std::byte> contents);
// Checks a header against the contents. Returns the errors of verify() below.
Result<> verify(const BlockHeader& header, Hash128 format, Hash128 key, std::span<const std::byte> contents);

// Writes the header of a packed block; called when the contents are complete. key: chained hash of all tokens
// up to the block's end (transfer_keys).
void seal(const BlockFormat& format, Hash128 key, std::span<std::byte> packed);

// Checks a packed block. Returns invalid_argument if the format or the key differs, or corrupt if the header
// is missing or the checksum is wrong.
Result<> verify(const BlockFormat& format, Hash128 key, std::span<const std::byte> packed);

}  // namespace octavo
