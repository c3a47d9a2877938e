// Blocks as their engine has them in memory, for engines whose blocks look alike there: they go over without
// a change of layout and without a copy in between.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "transfer/kv_pieces.h"

namespace octavo {

struct NativeBlocks {
  // Names what a block looks like. Engines of the same model and format with the same name may exchange them.
  // "": blocks have no memory that others can take them from.
  std::string layout{};
  // All of a piece, in a row. Any thread, for blocks that no step writes or uses meanwhile.
  std::function<std::span<std::byte>(KvPlace)> memory{};
};

}  // namespace octavo
