#include "serve/unknown_fields.h"

#include <algorithm>

#include "base/log.h"

namespace octavo {

void UnknownFields::warn(std::span<const std::string> names) {
  constexpr std::size_t kWarnedMax = 256;
  constexpr std::size_t kNameBytesMax = 64;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    const bool plain = std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    if (!plain || name.size() > kNameBytesMax || warned_.size() >= kWarnedMax) continue;
    if (warned_.insert(name).second)
      log_warning("request field \"{}\" is ignored, because it is unknown or has no effect", name);
  }
}

}  // namespace octavo
