// A KV block outside its engine: a header, then all layers of its cache group in the layout of
// kernels/kv_exchange.h. States of recurrent layers exist at the end of a block (f32, layer after layer).
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
  std::int64_t bytes = 0;     // bytes of a piece: a block with all layers of the largest cache group
  // Window of each cache group in tokens; 0: no window. The pieces of smaller cache groups are padded.
  std::vector<int> windows{0};
  int state_pieces = 0;  // number of pieces of recurrent states; the last one is padded
  // Layout of a block's bytes: planes one after another, each with block_size tokens. It follows from the
  // model, so it is not compared between engines. Empty: blocks have another layout.
  struct Planes {
    int count = 0;
    int token_bytes = 0;

    bool operator==(const Planes&) const = default;
  };
  std::vector<Planes> planes{};

  bool operator==(const BlockFormat&) const = default;

  // Bytes from one packed block to the next, including headers.
  std::size_t stride() const;
  // Hash of all compared fields; a block's header contains it.
  Hash128 digest() const;
};

// Name of the first field that differs: "model", "dtype", ...; "": the formats are equal.
std::string difference(const BlockFormat& a, const BlockFormat& b);

// The part of a packed block that contains keys and values. packed: format.stride() bytes.
std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed);
std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed);

// Bytes of a packed block, padded to a multiple of `alignment` (a power of two).
std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment);

// A buffer with packed_bytes() bytes and this alignment. It belongs to the calling thread and is valid
// until the thread's next call.
std::span<std::byte> packed_block(const BlockFormat& format, std::size_t alignment = 1);

// Header of a block: its format (BlockFormat::digest()), the hash of its tokens, its size and its checksum.
using BlockHeader = std::array<std::byte, 64>;
BlockHeader header_of(Hash128 format, Hash128 key, std::span<const std::byte> contents);
// Errors: those of verify() below.
Result<> verify(const BlockHeader& header, Hash128 format, Hash128 key, std::span<const std::byte> contents);

// Writes the header of a packed block; call it when the contents are complete. key: chained hash of all
// tokens up to the block's end (transfer_keys).
void seal(const BlockFormat& format, Hash128 key, std::span<std::byte> packed);

// Errors: invalid_argument, the format or the key differs; corrupt, the header is missing or the checksum
// is wrong.
Result<> verify(const BlockFormat& format, Hash128 key, std::span<const std::byte> packed);

}  // namespace octavo
