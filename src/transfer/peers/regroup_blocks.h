// Converts KV blocks between block sizes, so that engines with different block sizes can exchange them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "transfer/block_format.h"

namespace octavo {

// can_regroup() returns true if the formats differ only in block_size, by a factor of at most kRegroupMost.
// It returns false for sliding windows and recurrent states.
inline constexpr int kRegroupMost = 16;
bool can_regroup(const BlockFormat& from, const BlockFormat& to);

class BlockRegrouper {
 public:
  // Writes block `number` of the source to the span.
  using ReadBlock = std::function<void(std::size_t, std::span<std::byte>)>;

  // Requires can_regroup(from, to). Both formats must outlive this object.
  BlockRegrouper(const BlockFormat& from, const BlockFormat& to, ReadBlock read);

  // Writes block `number` of format `to`. All tokens of that block must be in blocks of the source.
  void make(std::size_t number, std::span<std::byte> out);

 private:
  const BlockFormat& from_;
  const BlockFormat& to_;
  const ReadBlock read_;
  std::vector<std::byte> block_;
  std::size_t number_;  // index of the block in block_
};

}  // namespace octavo
