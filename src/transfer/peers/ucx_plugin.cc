#include "transfer/peers/ucx_plugin.h"

#include <cstdlib>

#include "base/plugin.h"

namespace octavo {
namespace {

Result<OpenUcxChannel> load() {
  set_ucx_variables();
  const auto function = plugin_function("liboctavo_ucx.so", kOpenUcxChannel);
  if (!function) return failure(function.error().code, "UCX is not available: {}", function.error().message);
  return reinterpret_cast<OpenUcxChannel>(*function);
}

}  // namespace

void set_ucx_variables() {
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_ERROR_SIGNALS", "", 0);
  setenv("UCX_MEM_EVENTS", "no", 0);
  // UCX must not log warnings: it would log one for each cancelled fetch that leaves unreceived data.
  setenv("UCX_LOG_LEVEL", "error", 0);
}

Result<std::unique_ptr<UcxChannel>> open_ucx_channel() {
  static const Result<OpenUcxChannel> open = load();
  if (!open) return std::unexpected(open.error());
  char error_text[256] = {};
  if (UcxChannel* channel = (*open)(error_text, sizeof error_text))
    return std::unique_ptr<UcxChannel>(channel);
  return failure(ErrorCode::unavailable, "UCX: {}", error_text);
}

}  // namespace octavo
