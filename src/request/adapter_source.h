// A LoRA adapter by name: what requests say in CacheIdentity::adapter.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace octavo {

struct AdapterSource {
  std::string name;
  std::string path;  // of its folder, as the engine sees it
};

// Told once, on any thread, how loading or unloading an adapter went.
using AdapterDone = std::function<void(Result<>)>;

}  // namespace octavo
