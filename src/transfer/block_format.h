// Format of KV blocks outside of the engine's cache: on disks, in stores, and on the way to other engines. A
// packed block is a header and the contents: all layers of one cache group, in the layout of
// kernels/kv_exchange.h. Each recurrent layer has one state (f32). The states of all layers follow each
// other, and are cut into pieces of the size of a block.
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

// Format of an engine's blocks. Two engines can exchange blocks if difference() is "", or if can_regroup().
struct BlockFormat {
  std::string fingerprint{};  // identity of the model: its files and its quantization
  std::string dtype{};        // data type of keys and values
  int block_size = 0;         // tokens per block
  // bytes of one piece: a block with all layers of the largest cache group
  std::int64_t bytes = 0;
  // Sliding window of each cache group in tokens; 0: no window. The block of a group with fewer layers than
  // the largest group is padded to `bytes`.
  std::vector<int> windows{0};
  // number of pieces that hold the recurrent states; the last piece is padded
  int state_pieces = 0;
  // A block contains `count` equal planes. Each plane has token_bytes bytes for each of block_size tokens.
  // digest() and difference() skip this field, because the model determines it. Empty: a block cannot be
  // split by tokens.
  struct Planes {
    int count = 0;
    int token_bytes = 0;

    bool operator==(const Planes&) const = default;
  };
  std::vector<Planes> planes{};

  bool operator==(const BlockFormat&) const = default;

  // Returns the size in bytes of a packed block (header and contents), padded to a multiple of 64.
  std::size_t stride() const;
  // Returns a hash of all fields except `planes`. The header of each block contains this digest, so that
  // readers detect blocks of other formats.
  Hash128 digest() const;
};

// Returns a sentence about the first field that differs ("the block sizes are 16 and 32"), or "" if the
// formats are equal.
std::string difference(const BlockFormat& a, const BlockFormat& b);

// Returns the contents of a packed block, without its header. packed: format.stride() bytes.
std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed);
std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed);

// Returns the size of a packed block in bytes, padded to a multiple of `alignment` (a power of two).
std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment);

// Returns a thread-local buffer of packed_bytes() bytes with this alignment. The thread's next call reuses
// it.
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
