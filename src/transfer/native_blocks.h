// KV blocks in their engine's memory layout. Engines with the same layout transfer them without conversion
// and without an extra copy.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "transfer/kv_pieces.h"

namespace octavo {

struct NativeBlocks {
  // Name of the layout. Two engines may exchange native blocks if model, format and layout are equal. "":
  // other engines cannot read the memory of blocks.
  std::string layout{};
  // Returns the memory of a piece, which is contiguous. Any thread; during the access, steps may not write or
  // use the block.
  std::function<std::span<std::byte>(KvPlace)> memory{};
};

}  // namespace octavo
