#include "fleet/index/prefix_keys.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "base/check.h"

namespace octavo::fleet {

static_assert(std::endian::native == std::endian::little, "keys are hashes of little-endian numbers");

PrefixKey first_key(std::string_view model, std::string_view salt) {
  const std::string both = std::string(model).append(salt);
  return XXH64(both.data(), both.size(), 0);
}

PrefixKey next_key(PrefixKey parent, std::span<const std::uint32_t> block) {
  const std::array<std::uint64_t, 2> link{XXH64(block.data(), block.size_bytes(), 0), parent};
  return XXH64(link.data(), sizeof link, 0);
}

void prefix_keys(PrefixKey first, std::span<const std::uint32_t> tokens, int block_size, bool partial,
                 std::vector<PrefixKey>& keys) {
  CHECK(block_size > 0, "a block of {} tokens", block_size);
  keys.clear();
  const auto step = static_cast<std::size_t>(block_size);
  PrefixKey key = first;
  for (std::size_t begin = 0; begin < tokens.size(); begin += step) {
    const std::size_t count = std::min(step, tokens.size() - begin);
    if (count < step && !partial) break;
    key = next_key(key, tokens.subspan(begin, count));
    keys.push_back(key);
  }
}

}  // namespace octavo::fleet
