// A LoRA adapter: its name, as in CacheIdentity::adapter, and its folder.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace octavo {

struct AdapterSource {
  std::string name;
  std::string path;  // path of its folder on the engine's host
};

// Called once, on any thread, with the result of loading or unloading an adapter.
using AdapterDone = std::function<void(Result<>)>;

}  // namespace octavo
