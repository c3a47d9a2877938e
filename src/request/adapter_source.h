// A LoRA adapter by name: what requests say in CacheIdentity::adapter.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace octavo {

struct AdapterSource {
  std::string name;
  std::string path;  // path of its folder, as the engine sees it
};

// Reports once, on any thread, whether loading or unloading an adapter succeeded.
using AdapterDone = std::function<void(Result<>)>;

}  // namespace octavo
