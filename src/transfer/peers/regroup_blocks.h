// Blocks of one size made of blocks of another, for an engine whose blocks have more tokens or fewer.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "transfer/block_format.h"

namespace octavo {

// Whether blocks of `to` can be made of those of `from`, which differ in nothing but their size, at most
// kRegroupMost times as large. Not where a cache group has a window or the model keeps states: those end
// where blocks do.
inline constexpr int kRegroupMost = 16;
bool can_regroup(const BlockFormat& from, const BlockFormat& to);

class BlockRegrouper {
 public:
  // (number of a block of `from` in its prompt, out): its contents.
  using ReadBlock = std::function<void(std::size_t, std::span<std::byte>)>;

  // can_regroup(from, to); both outlive this.
  BlockRegrouper(const BlockFormat& from, const BlockFormat& to, ReadBlock read);

  // Contents of block `number` of `to`, all of whose tokens there are.
  void make(std::size_t number, std::span<std::byte> out);

 private:
  const BlockFormat& from_;
  const BlockFormat& to_;
  const ReadBlock read_;
  std::vector<std::byte> block_;  // the last that was read
  std::size_t number_;            // of it
};

}  // namespace octavo
