#include "transfer/ucx_plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace octavo {
namespace {

constexpr const char* kLibrary = "liboctavo_ucx.so";

// Beside the program, or where it is installed.
Result<OpenUcxChannel> load() {
  // UCX reads these when it is loaded: signals and the system's memory calls are this program's own.
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_ERROR_SIGNALS", "", 0);
  setenv("UCX_MEM_EVENTS", "no", 0);
  setenv("UCX_LOG_LEVEL", "error", 0);  // it warns of what a fetch that was given up has left
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::string why = fmt::format("{} is neither in {} nor in its ../lib/octavo", kLibrary, folder.string());
  // A test's folder is below the program's.
  for (const std::filesystem::path& file :
       {folder / kLibrary, folder / "../lib/octavo" / kLibrary, folder / "../.." / kLibrary}) {
    if (!std::filesystem::exists(file, none)) continue;
    void* library = dlopen(file.c_str(), RTLD_NOW);
    if (library == nullptr) {
      why = dlerror();
      continue;
    }
    const auto open = reinterpret_cast<OpenUcxChannel>(dlsym(library, kOpenUcxChannel));
    if (open == nullptr) return failure(ErrorCode::corrupt, "{} has no {}", file.string(), kOpenUcxChannel);
    return open;
  }
  return failure(ErrorCode::unsupported, "no UCX here: {}", why);
}

}  // namespace

Result<std::unique_ptr<UcxChannel>> open_ucx_channel() {
  static const Result<OpenUcxChannel> open = load();
  if (!open) return std::unexpected(open.error());
  char said[256] = {};
  if (UcxChannel* channel = (*open)(said, sizeof said)) return std::unique_ptr<UcxChannel>(channel);
  return failure(ErrorCode::unavailable, "UCX: {}", said);
}

}  // namespace octavo
