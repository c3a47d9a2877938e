// Converts blocks of one size to another, for engines with different block sizes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "transfer/block_format.h"

namespace octavo {

// Maximum ratio of block sizes. can_regroup: true if blocks of `to` can be made from those of `from`, which
// differ only in their size. False if a cache group has a window or the model keeps states, because these end
// with a block.
inline constexpr int kRegroupMost = 16;
bool can_regroup(const BlockFormat& from, const BlockFormat& to);

class BlockRegrouper {
 public:
  // Reads (block number of `from` in its prompt, out).
  using ReadBlock = std::function<void(std::size_t, std::span<std::byte>)>;

  // Requires can_regroup(from, to); both outlive this object.
  BlockRegrouper(const BlockFormat& from, const BlockFormat& to, ReadBlock read);

  // Makes the contents of block `number` of `to`; all its tokens must be available.
  void make(std::size_t number, std::span<std::byte> out);

 private:
  const BlockFormat& from_;
  const BlockFormat& to_;
  const ReadBlock read_;
  std::vector<std::byte> block_;  // contents of the last block read
  std::size_t number_;            // number of the last block read
};

}  // namespace octavo
