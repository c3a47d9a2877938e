#include "dist/mpi_plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace octavo {
namespace {

constexpr const char* kLibrary = "liboctavo_mpi.so";

}  // namespace

// Beside the program, or where it is installed.
Result<std::unique_ptr<Transport>> open_mpi_transport() {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::string why = fmt::format("{} is neither in {} nor in its ../lib/octavo", kLibrary, folder.string());
  for (const std::filesystem::path& file : {folder / kLibrary, folder / "../lib/octavo" / kLibrary}) {
    if (!std::filesystem::exists(file, none)) continue;
    // What MPI loads itself looks for its symbols among all there are.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      why = dlerror();
      continue;
    }
    const auto open = reinterpret_cast<OpenMpiTransport>(dlsym(library, kOpenMpiTransport));
    if (open == nullptr) return failure(ErrorCode::corrupt, "{} has no {}", file.string(), kOpenMpiTransport);
    char said[256] = {};
    if (Transport* transport = open(said, sizeof said)) return std::unique_ptr<Transport>(transport);
    return failure(ErrorCode::unavailable, "MPI: {}", said);
  }
  return failure(ErrorCode::unsupported, "no MPI here: {}", why);
}

}  // namespace octavo
