// Records which blocks have which content, in memory that outlives the process (a memfd that the parent
// process owns). If the engine process is killed, the next engine process reads the records and reuses the
// KV cache.
//
// The process may be killed while it writes a record. So each record has a state word, which is cleared
// before other fields change and set after they are written. A record without the state word is not used. A
// checksum covers the fields and the checksum of the block's data, so damaged memory is detected.
//
// If block_size is 0, the records describe saved states of recurrent layers, and a block number means a
// slot.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/hash.h"
#include "kv/block_pool.h"

namespace octavo {

struct BlockRecordsShape {
  int num_blocks = 0;
  int block_size = 0;     // tokens per block
  Hash128 identity = {};  // hash of everything, except the tokens, that determines the content of a block
};

class BlockRecords {
 public:
  struct Record {
    BlockContent content;  // content.tokens points into the memory of the records
    PrefixId prefix = kEmptyPrefix;
    std::uint64_t data_checksum = 0;
    // sequence number of the release that freed the block; kInUse: the block has users
    std::uint64_t released = 0;
  };
  enum class State : std::uint8_t { empty, broken, complete };
  static constexpr std::uint64_t kInUse = ~std::uint64_t{0};

  // Returns the size of the memory in bytes. If num_blocks is 0, returns the size of the header.
  static std::size_t bytes(const BlockRecordsShape& shape);

  // Returns the number of blocks in the header, or nullopt if the header has another block size or
  // identity.
  static std::optional<int> blocks_of(std::span<const std::byte> header, BlockRecordsShape shape);

  // `memory` has bytes(shape) bytes, is aligned to 8 bytes, and is zero or was written by an earlier
  // process.
  BlockRecords(std::span<std::byte> memory, BlockRecordsShape shape);

  // Returns whether the memory contains records of this format version, shape and identity.
  bool continues() const;
  // Empties all records and writes the header. `seed` is stored for later processes, which read it with
  // seed().
  void begin(std::uint64_t seed);
  std::uint64_t seed() const;

  // Numbers of contents that later processes have kept and discarded. They are stored in the memory of the
  // records.
  std::int64_t& kept() const;
  std::int64_t& discarded() const;

  State state(BlockId block) const;  // The result is `broken` if the record is incomplete or damaged.
  Record read(BlockId block) const;  // The state must be `complete`.
  void write(BlockId block, const BlockContent& content, PrefixId prefix, std::uint64_t data_checksum);
  void set_released(BlockId block, std::uint64_t released);
  void erase(BlockId block);
  void erase_all();

 private:
  struct Header;
  struct Fields;

  static std::size_t record_bytes(int block_size);
  Header& header() const { return *reinterpret_cast<Header*>(memory_.data()); }
  Fields& fields(BlockId block) const;
  std::span<std::int32_t> tokens(BlockId block) const;
  std::uint64_t checksum(BlockId block) const;

  std::span<std::byte> memory_;
  BlockRecordsShape shape_;
  std::size_t stride_;
};

}  // namespace octavo
