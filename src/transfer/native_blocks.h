// Access to KV blocks in the layout of the engine's own memory. Engines with equal layouts transfer blocks
// without conversion and without an extra copy.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "transfer/kv_pieces.h"

namespace octavo {

struct NativeBlocks {
  // Name of the layout. Two engines may exchange native blocks if their BlockFormat and layout are equal. "":
  // blocks must be packed, because transports cannot read the engine's memory.
  std::string layout{};
  // Returns the contiguous memory of a piece. Any thread may call it. Steps must not use the piece while a
  // transport reads or writes it.
  std::function<std::span<std::byte>(KvLocation)> memory{};
};

}  // namespace octavo
