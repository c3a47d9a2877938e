// Blocks in their engine's memory layout. Engines with the same layout transfer them without conversion and
// without an extra copy.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "transfer/kv_pieces.h"

namespace octavo {

struct NativeBlocks {
  // Name of the layout. Engines of the same model, format and layout may exchange native blocks. "": other
  // engines cannot read the memory of blocks.
  std::string layout{};
  // Contiguous memory of a piece. Any thread, while no step writes or uses the block.
  std::function<std::span<std::byte>(KvPlace)> memory{};
};

}  // namespace octavo
