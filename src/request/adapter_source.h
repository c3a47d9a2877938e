// The name of a LoRA adapter, and the folder of its files. CacheIdentity::adapter is the same name.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace octavo {

struct AdapterSource {
  std::string name;
  std::string path;  // path on the engine's host
};

using AdapterDone = std::function<void(Result<>)>;

}  // namespace octavo
