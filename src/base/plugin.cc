#include "base/plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace octavo {

Result<void*> plugin_function(const std::string& library, const char* function, bool for_all) {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::string why = fmt::format("{} not found in {} or its ../lib/octavo", library, folder.string());
  for (const std::filesystem::path& file : {folder / library, folder / "../lib/octavo" / library}) {
    if (!std::filesystem::exists(file, none)) continue;
    void* const loaded = dlopen(file.c_str(), RTLD_NOW | (for_all ? RTLD_GLOBAL : 0));
    if (loaded == nullptr) {
      why = dlerror();
      continue;
    }
    if (void* const found = dlsym(loaded, function)) return found;
    return failure(ErrorCode::corrupt, "{} has no {}", file.string(), function);
  }
  return failure(ErrorCode::unsupported, "{}", why);
}

}  // namespace octavo
