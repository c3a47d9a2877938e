#include "kv/block_records.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMagic = 0x5356434f4b564243;
constexpr std::uint32_t kVersion = 1;  // increase it when Header or Fields change
constexpr std::uint32_t kEmpty = 0, kComplete = 0x4b455054;

}  // namespace

struct BlockRecords::Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::int32_t num_blocks;
  std::int32_t block_size;
  std::uint32_t record_bytes;
  Hash128 identity;
  std::uint64_t seed;
  std::uint64_t checksum;  // checksum of the fields above
  std::int64_t kept;
  std::int64_t discarded;

  std::uint64_t computed_checksum() const;
};

struct BlockRecords::Fields {
  std::uint32_t state;  // kEmpty or kComplete; a record with any other value is broken
  std::int32_t group;
  // number of the release; the checksum does not include it, because it changes often
  std::uint64_t released;
  std::uint64_t checksum;  // checksum of `group`, the tokens and the fields below
  std::uint64_t data_checksum;
  Hash128 key, extra, parent_key;
  PrefixId prefix;
  PrefixId parent;
};

std::size_t BlockRecords::record_bytes(int block_size) {
  return (sizeof(Fields) + static_cast<std::size_t>(block_size) * sizeof(std::int32_t) + 7) / 8 * 8;
}

std::size_t BlockRecords::bytes(const BlockRecordsShape& shape) {
  return sizeof(Header) + static_cast<std::size_t>(shape.num_blocks) * record_bytes(shape.block_size);
}

BlockRecords::BlockRecords(std::span<std::byte> memory, BlockRecordsShape shape)
    : memory_(memory), shape_(shape), stride_(record_bytes(shape.block_size)) {
  CHECK(shape.num_blocks >= 0 && shape.block_size >= 0, "{} blocks of {} tokens", shape.num_blocks,
        shape.block_size);
  CHECK(memory.size() >= bytes(shape), "{} bytes for {}", memory.size(), bytes(shape));
}

BlockRecords::Fields& BlockRecords::fields(BlockId block) const {
  CHECK(block >= 0 && block < shape_.num_blocks, "block {} of {}", block, shape_.num_blocks);
  return *reinterpret_cast<Fields*>(memory_.data() + sizeof(Header) +
                                    static_cast<std::size_t>(block) * stride_);
}

std::span<std::int32_t> BlockRecords::tokens(BlockId block) const {
  auto* const first = reinterpret_cast<std::byte*>(&fields(block)) + sizeof(Fields);
  return {reinterpret_cast<std::int32_t*>(first), static_cast<std::size_t>(shape_.block_size)};
}

// The block number is the seed, so the checksum is wrong if a record is at the index of another block.
std::uint64_t BlockRecords::checksum(BlockId block) const {
  const Fields& f = fields(block);
  const auto* const first = reinterpret_cast<const std::byte*>(&f.data_checksum);
  const auto* const end = reinterpret_cast<const std::byte*>(&f) + stride_;
  const std::uint64_t seed = (static_cast<std::uint64_t>(block) << 32) | static_cast<std::uint32_t>(f.group);
  return hash_bytes(HashAlgorithm::xxh3_128, {first, end}, seed).low;
}

std::uint64_t BlockRecords::Header::computed_checksum() const {
  const auto bytes = std::as_bytes(std::span(this, 1)).first(offsetof(Header, checksum));
  return hash_bytes(HashAlgorithm::xxh3_128, bytes, kVersion).low;
}

std::optional<int> BlockRecords::blocks_of(std::span<const std::byte> header, BlockRecordsShape shape) {
  Header h;
  CHECK(header.size() >= sizeof h);
  std::memcpy(&h, header.data(), sizeof h);
  const bool same = h.magic == kMagic && h.version == kVersion && h.block_size == shape.block_size &&
                    h.record_bytes == record_bytes(shape.block_size) && h.identity == shape.identity &&
                    h.checksum == h.computed_checksum();
  return same ? std::optional(h.num_blocks) : std::nullopt;
}

bool BlockRecords::continues() const { return blocks_of(memory_, shape_) == shape_.num_blocks; }

void BlockRecords::begin(std::uint64_t seed) {
  erase_all();
  Header& h = header();
  h = {.magic = kMagic,
       .version = kVersion,
       .num_blocks = shape_.num_blocks,
       .block_size = shape_.block_size,
       .record_bytes = static_cast<std::uint32_t>(stride_),
       .identity = shape_.identity,
       .seed = seed,
       .checksum = 0,
       .kept = 0,
       .discarded = 0};
  h.checksum = h.computed_checksum();
}

std::uint64_t BlockRecords::seed() const { return header().seed; }
std::int64_t& BlockRecords::kept() const { return header().kept; }
std::int64_t& BlockRecords::discarded() const { return header().discarded; }

BlockRecords::State BlockRecords::state(BlockId block) const {
  const Fields& f = fields(block);
  if (f.state == kEmpty) return State::empty;
  const bool intact = f.state == kComplete && f.checksum == checksum(block) && f.prefix != kEmptyPrefix;
  return intact ? State::complete : State::broken;
}

BlockRecords::Record BlockRecords::read(BlockId block) const {
  const Fields& f = fields(block);
  return {.content = {f.group, f.key, f.extra, f.parent, tokens(block), f.parent_key},
          .prefix = f.prefix,
          .data_checksum = f.data_checksum,
          .released = f.released};
}

void BlockRecords::write(BlockId block, const BlockContent& content, PrefixId prefix,
                         std::uint64_t data_checksum) {
  erase(block);
  Fields& f = fields(block);
  const std::span<std::int32_t> own_tokens = tokens(block);
  CHECK(content.tokens.size() == own_tokens.size(), "{} tokens for a block of {}", content.tokens.size(),
        own_tokens.size());
  f.group = content.group;
  f.released = kInUse;
  f.data_checksum = data_checksum;
  f.key = content.key;
  f.extra = content.extra;
  f.parent_key = content.parent_key;
  f.prefix = prefix;
  f.parent = content.parent;
  std::ranges::copy(content.tokens, own_tokens.begin());
  f.checksum = checksum(block);
  std::atomic_ref(f.state).store(kComplete, std::memory_order_release);
}

void BlockRecords::set_released(BlockId block, std::uint64_t released) { fields(block).released = released; }

// The fence ensures that the state is cleared before the fields and the data of the block are overwritten.
void BlockRecords::erase(BlockId block) {
  std::atomic_ref(fields(block).state).store(kEmpty, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void BlockRecords::erase_all() {
  for (BlockId block = 0; block < shape_.num_blocks; ++block)
    std::atomic_ref(fields(block).state).store(kEmpty, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace octavo
