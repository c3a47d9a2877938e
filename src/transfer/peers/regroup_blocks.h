// Converts blocks of one size to blocks of another size, for engines with different block sizes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "transfer/block_format.h"

namespace octavo {

// kRegroupMost: maximum ratio of the block sizes. can_regroup: returns true if blocks of `to` can be made
// from blocks of `from`. The formats may differ only in block_size. It returns false if a cache group has a
// window or the model has states, because these belong to the end of a block.
inline constexpr int kRegroupMost = 16;
bool can_regroup(const BlockFormat& from, const BlockFormat& to);

class BlockRegrouper {
 public:
  // Writes the contents of a block to `out`; called with (index of a block of `from` in its prompt, out).
  using ReadBlock = std::function<void(std::size_t, std::span<std::byte>)>;

  // Requires can_regroup(from, to). Both formats must outlive this object.
  BlockRegrouper(const BlockFormat& from, const BlockFormat& to, ReadBlock read);

  // Makes the contents of block `number` of `to`; all its tokens must be available in blocks of `from`.
  void make(std::size_t number, std::span<std::byte> out);

 private:
  const BlockFormat& from_;
  const BlockFormat& to_;
  const ReadBlock read_;
  std::vector<std::byte> block_;  // the last block read
  std::size_t number_;            // index of the last block read
};

}  // namespace octavo
