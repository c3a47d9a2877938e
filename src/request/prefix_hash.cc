#include "request/prefix_hash.h"

#include <array>
#include <cstring>

#include "base/check.h"

namespace octavo {
namespace {

// The inputs of the hash have fixed layouts and begin with different tags, so the bytes of an identity
// never equal the bytes of a block.
constexpr std::uint64_t kRootTag = 0x746f6f72;
constexpr std::uint64_t kBlockTag = 0x6b636f6c62;
constexpr std::uint64_t kExtraBlockTag = 0x6b636f6c6265;

void put(std::byte*& out, const void* from, std::size_t bytes) {
  std::memcpy(out, from, bytes);
  out += bytes;
}

}  // namespace

PrefixHasher::PrefixHasher(PrefixHashOptions options, int block_size)
    : options_(options), block_size_(static_cast<std::size_t>(block_size)) {
  CHECK(block_size > 0 && block_size <= kBlockSizeMax, "block size {}", block_size);
}

void PrefixHasher::extend(std::span<const TokenId> tokens, Hash128 identity, std::vector<Hash128>& keys,
                          std::span<const Hash128> extras) const {
  std::array<std::byte, sizeof(kBlockTag) + 2 * sizeof(Hash128) + kBlockSizeMax * sizeof(TokenId)> bytes;
  const auto hash = [&](std::uint64_t tag, Hash128 before, std::span<const Hash128> extra,
                        std::span<const TokenId> block) {
    std::byte* end = bytes.data();
    put(end, &tag, sizeof tag);
    put(end, &before, sizeof before);
    if (!extra.empty()) put(end, extra.data(), extra.size_bytes());
    if (!block.empty()) put(end, block.data(), block.size_bytes());
    return options_.hash(options_.algorithm, std::span(bytes.data(), end), options_.seed);
  };
  while ((keys.size() + 1) * block_size_ <= tokens.size()) {
    const Hash128 before = keys.empty() ? hash(kRootTag, identity, {}, {}) : keys.back();
    const bool more = keys.size() < extras.size();
    keys.push_back(hash(more ? kExtraBlockTag : kBlockTag, before,
                        more ? extras.subspan(keys.size(), 1) : std::span<const Hash128>(),
                        tokens.subspan(keys.size() * block_size_, block_size_)));
  }
}

}  // namespace octavo
