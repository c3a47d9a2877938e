// Records of the contents of blocks, in memory that outlives the process (a memfd of its parent). After the
// process was killed at any moment, the next one reads which blocks had complete contents.
//
// A record has a state word. It is set after all other fields are written, and cleared before they change.
// So a record that was being written at the end of the process is not trusted. A checksum covers the fields
// and the checksum of the block's data: it finds damaged memory.
//
// With a block size of 0, the records are those of saved states of recurrent layers, and a block is a slot.
//
// Records belong to one format version, one shape and one identity; with others, all are empty.
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
  Hash128 identity = {};  // hash of everything that determines the content of a block with given tokens
};

class BlockRecords {
 public:
  struct Record {
    BlockContent content;  // tokens: in the memory of the records
    PrefixId prefix = kEmptyPrefix;
    std::uint64_t data_checksum = 0;
    std::uint64_t released = 0;  // number of the release that freed the block; kInUse: it has users
  };
  enum class State : std::uint8_t { empty, broken, complete };
  static constexpr std::uint64_t kInUse = ~std::uint64_t{0};

  static std::size_t bytes(const BlockRecordsShape& shape);  // without blocks: the size of the header

  // Returns the number of blocks in a header that has this block size and identity.
  static std::optional<int> blocks_of(std::span<const std::byte> header, BlockRecordsShape shape);

  // memory: bytes(shape) bytes, zero or written by an earlier process, aligned to 8 bytes.
  BlockRecords(std::span<std::byte> memory, BlockRecordsShape shape);

  // Returns true if the memory has records of this version, shape and identity.
  bool continues() const;
  // Empties all records and writes the header. seed: a number for later processes, see seed().
  void begin(std::uint64_t seed);
  std::uint64_t seed() const;

  // Counters of later processes; they live as long as the memory.
  std::int64_t& kept() const;
  std::int64_t& discarded() const;

  State state(BlockId block) const;  // broken: the record is incomplete or damaged
  Record read(BlockId block) const;  // the state must be `complete`
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
  std::size_t stride_;  // bytes of a record
};

}  // namespace octavo
