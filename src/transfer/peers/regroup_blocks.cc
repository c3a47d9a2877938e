#include "transfer/peers/regroup_blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace octavo {

bool can_regroup(const BlockFormat& from, const BlockFormat& to) {
  if (from.planes.empty() || to.block_size == from.block_size || to.block_size < 1 ||
      to.block_size > std::int64_t{kRegroupMost} * from.block_size)
    return false;
  BlockFormat same = to;
  same.block_size = from.block_size;
  same.bytes = from.bytes;
  return difference(from, same).empty() && to.bytes == from.bytes / from.block_size * to.block_size;
}

BlockRegrouper::BlockRegrouper(const BlockFormat& from, const BlockFormat& to, ReadBlock read)
    : from_(from),
      to_(to),
      read_(std::move(read)),
      block_(static_cast<std::size_t>(from.bytes)),
      number_(std::numeric_limits<std::size_t>::max()) {}

void BlockRegrouper::make(std::size_t number, std::span<std::byte> out) {
  const auto size_from = static_cast<std::size_t>(from_.block_size),
             size_to = static_cast<std::size_t>(to_.block_size);
  const std::size_t first = number * size_to, end = first + size_to;
  for (std::size_t at = first, count = 0; at < end; at += count) {
    if (const std::size_t block = at / size_from; block != number_) read_(number_ = block, block_);
    const std::size_t inside = at % size_from;
    count = std::min(size_from - inside, end - at);
    std::size_t plane_from = 0, plane_to = 0;
    for (const BlockFormat::Planes& planes : from_.planes) {
      const auto bytes = static_cast<std::size_t>(planes.token_bytes);
      for (int i = 0; i < planes.count; ++i) {
        std::memcpy(&out[plane_to + (at - first) * bytes], &block_[plane_from + inside * bytes],
                    count * bytes);
        plane_from += size_from * bytes;
        plane_to += size_to * bytes;
      }
    }
  }
}

}  // namespace octavo
