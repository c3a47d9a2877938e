// Format in which a KV block leaves its engine, for disks, stores and other engines. A block consists of a
// header and of all layers of its cache group, in the layout of kernels/kv_exchange.h. Recurrent layers
// have one state (f32) at the end of a block. These states follow each other layer by layer, and are cut
// into pieces of the size of a block.
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
  std::string fingerprint{};  // identity of the model: its files and its quantization
  std::string dtype{};        // data type of keys and values
  int block_size = 0;         // tokens per block
  // bytes of one piece: a block with all layers of the largest cache group
  std::int64_t bytes = 0;
  // Sliding window of each cache group in tokens; 0: no window. Blocks of groups with fewer layers are padded
  // to `bytes`.
  std::vector<int> windows{0};
  // number of pieces that hold the recurrent states; the last piece is padded
  int state_pieces = 0;
  // A block consists of `count` planes, each with token_bytes for each of block_size tokens. Engines do not
  // compare this field, because the model determines it. count 0: the block cannot be split by tokens.
  struct Planes {
    int count = 0;
    int token_bytes = 0;

    bool operator==(const Planes&) const = default;
  };
  std::vector<Planes> planes{};

  bool operator==(const BlockFormat&) const = default;

  // Returns the distance in bytes between two packed blocks (header and contents).
  std::size_t stride() const;
  // Returns a hash of all fields that operator== compares. The header of each block contains this digest, so
  // that readers detect blocks of other formats.
  Hash128 digest() const;
};

// Returns the name of the first field that differs: "model", "dtype", ...; "" if the formats are equal.
std::string difference(const BlockFormat& a, const BlockFormat& b);

// Returns the contents of a packed block, without its header. packed: format.stride() bytes.
std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed);
std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed);

// Returns the bytes of a packed block, padded to a multiple of `alignment` (a power of two).
std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment);

// Returns a thread-local buffer of packed_bytes() bytes with this alignment, valid until the thread's next
// call.
std::span<std::byte> packed_block(const BlockFormat& format, std::size_t alignment = 1);

// Contains BlockFormat::digest(), the block's key, the size of the contents and their checksum.
using BlockHeader = std::array<std::byte, 64>;
BlockHeader header_of(Hash128 format, Hash128 key, std::span<const std::byte> contents);
// Checks that the header belongs to the contents. Returns the same errors as verify() below.
Result<> verify(const BlockHeader& header, Hash128 format, Hash128 key, std::span<const std::byte> contents);

// Writes the header of a packed block after its contents are complete. key: hash of all tokens up to the
// end of the block (transfer_keys).
void seal(const BlockFormat& format, Hash128 key, std::span<std::byte> packed);

// Checks a packed block. Returns invalid_argument if the format or the key differs, or corrupt if the header
// is missing or the checksum is wrong.
Result<> verify(const BlockFormat& format, Hash128 key, std::span<const std::byte> packed);

}  // namespace octavo
