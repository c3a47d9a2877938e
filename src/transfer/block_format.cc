#include "transfer/block_format.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little, "headers go over the wire as they are");

constexpr std::uint64_t kMagic = 0x31424B2D4F415443;  // "CTAO-KB1"

struct Header {
  std::uint64_t magic;
  std::uint64_t bytes;
  Hash128 format;  // BlockFormat::digest()
  Hash128 key;
  Hash128 checksum;
};
static_assert(sizeof(Header) == sizeof(BlockHeader));

Hash128 checksum(std::span<const std::byte> bytes) { return hash_bytes(HashAlgorithm::xxh3_128, bytes, 0); }

}  // namespace

std::size_t BlockFormat::stride() const {
  return (sizeof(Header) + static_cast<std::size_t>(bytes) + 63) / 64 * 64;
}

Hash128 BlockFormat::digest() const {
  std::string text = fmt::format("{}|{}|{}|{}", fingerprint, dtype, block_size, bytes);
  if (windows != BlockFormat{}.windows || state_pieces > 0)
    text += fmt::format("|{}|{}", fmt::join(windows, ","), state_pieces);
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(text)), 0);
}

std::string difference(const BlockFormat& a, const BlockFormat& b) {
  if (a.fingerprint != b.fingerprint)
    return fmt::format("the models are {} and {}", a.fingerprint, b.fingerprint);
  if (a.dtype != b.dtype) return fmt::format("the KV cache dtypes are {} and {}", a.dtype, b.dtype);
  if (a.block_size != b.block_size)
    return fmt::format("the block sizes are {} and {}", a.block_size, b.block_size);
  if (a.bytes != b.bytes) return fmt::format("the blocks have {} and {} bytes", a.bytes, b.bytes);
  if (a.windows != b.windows)
    return fmt::format("the cache groups have windows of {} and {}", fmt::join(a.windows, ", "),
                       fmt::join(b.windows, ", "));
  if (a.state_pieces != b.state_pieces)
    return fmt::format("the states have {} and {} pieces", a.state_pieces, b.state_pieces);
  return "";
}

std::span<std::byte> contents(const BlockFormat& format, std::span<std::byte> packed) {
  return packed.subspan(sizeof(Header), static_cast<std::size_t>(format.bytes));
}

std::span<const std::byte> contents(const BlockFormat& format, std::span<const std::byte> packed) {
  return packed.subspan(sizeof(Header), static_cast<std::size_t>(format.bytes));
}

BlockHeader header_of(Hash128 format, Hash128 key, std::span<const std::byte> contents) {
  return std::bit_cast<BlockHeader>(Header{.magic = kMagic,
                                           .bytes = contents.size(),
                                           .format = format,
                                           .key = key,
                                           .checksum = checksum(contents)});
}

Result<> verify(const BlockHeader& bytes, Hash128 format, Hash128 key, std::span<const std::byte> contents) {
  const auto header = std::bit_cast<Header>(bytes);
  if (header.magic != kMagic) return failure(ErrorCode::corrupt, "the bytes are not a KV block");
  if (header.format != format || header.bytes != contents.size())
    return invalid("", "the KV block has a different model or format");
  if (header.key != key) return invalid("", "the KV block has different tokens");
  if (header.checksum != checksum(contents))
    return failure(ErrorCode::corrupt, "the KV block has a wrong checksum");
  return {};
}

std::size_t packed_bytes(const BlockFormat& format, std::size_t alignment) {
  return (format.stride() + alignment - 1) / alignment * alignment;
}

std::span<std::byte> packed_block(const BlockFormat& format, std::size_t alignment) {
  thread_local std::vector<std::byte> room;
  const std::size_t bytes = packed_bytes(format, alignment);
  if (room.size() < bytes + alignment - 1) room.resize(bytes + alignment - 1);
  void* first = room.data();
  std::size_t space = room.size();
  CHECK(std::align(alignment, bytes, first, space) != nullptr);
  return {static_cast<std::byte*>(first), bytes};
}

void seal(const BlockFormat& format, Hash128 key, std::span<std::byte> packed) {
  const BlockHeader header = header_of(format.digest(), key, contents(format, packed));
  std::memcpy(packed.data(), header.data(), header.size());
}

Result<> verify(const BlockFormat& format, Hash128 key, std::span<const std::byte> packed) {
  CHECK(packed.size() == format.stride());
  BlockHeader header;
  std::memcpy(header.data(), packed.data(), header.size());
  return verify(header, format.digest(), key, contents(format, packed));
}

}  // namespace octavo
