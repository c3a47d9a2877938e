#include "dist/mpi_plugin.h"

#include "base/plugin.h"

namespace octavo {

// RTLD_GLOBAL is needed because libraries that MPI loads use MPI's symbols.
Result<std::unique_ptr<Transport>> open_mpi_transport() {
  const auto function = plugin_function("liboctavo_mpi.so", kOpenMpiTransport, true);
  if (!function) return failure(function.error().code, "MPI is not available: {}", function.error().message);
  char error_text[256] = {};
  if (Transport* transport = reinterpret_cast<OpenMpiTransport>(*function)(error_text, sizeof error_text))
    return std::unique_ptr<Transport>(transport);
  return failure(ErrorCode::unavailable, "MPI: {}", error_text);
}

}  // namespace octavo
