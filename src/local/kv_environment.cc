#include "local/kv_environment.h"

#include <charconv>

#include "kernels/backends.h"

namespace octavo {
namespace {

// Reads the address for KV transfers from vLLM's variables. --kv-transfer-config has priority.
Result<> take_side_channel(KvTransferOptions& options, const hub::Environment& environment) {
  if (options.host.empty()) options.host = environment("VLLM_NIXL_SIDE_CHANNEL_HOST");
  const std::string port = environment("VLLM_NIXL_SIDE_CHANNEL_PORT");
  if (port.empty() || options.port) return {};
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 0 || number > 65'535)
    return invalid("VLLM_NIXL_SIDE_CHANNEL_PORT", "must be an integer in [0, 65535], got {}", port);
  options.port = number;
  return {};
}

// Reads the credentials of an S3 store from AWS's variables.
void take_store_keys(KvTransferOptions& options, const hub::Environment& environment) {
  if (!options.tier) return;
  StoreKeys& keys = options.tier->keys;
  keys.access = environment("AWS_ACCESS_KEY_ID");
  keys.secret = environment("AWS_SECRET_ACCESS_KEY");
  keys.session = environment("AWS_SESSION_TOKEN");
  keys.region = environment("AWS_REGION");
  if (keys.region.empty()) keys.region = environment("AWS_DEFAULT_REGION");
}

// Implements --kv-offloading-size: adds a KV tier in host memory or, if the cache itself is in host memory,
// in the user's cache folder.
Result<> take_offloading(const KvOffloading& offloading, KvTransferOptions& options,
                         const hub::Environment& environment) {
  if (offloading.gib == 0) return {};
  if (options.enabled)
    return invalid("--kv-offloading-size",
                   "cannot be combined with --kv-transfer-config, since both set where KV blocks are stored: "
                   "give one of them");
  const std::string home = environment("HOME");
  std::string folder = environment("XDG_CACHE_HOME");
  if (folder.empty() && home.empty())
    return invalid("--kv-offloading-size", "needs the user's cache folder: set XDG_CACHE_HOME or HOME");
  if (folder.empty()) folder = home + "/.cache";
  options.enabled = true;
  options.tier = {.path_or_url = folder + "/octavo/kv",
                  .bytes = static_cast<std::int64_t>(offloading.gib * (std::int64_t{1} << 30)),
                  .on_host_of_device = true};
  return {};
}

// Reads the size of the KV cache on CPUs, in GiB.
Result<> take_cpu_cache(EngineOptions& engine, const hub::Environment& environment) {
  constexpr const char* kName = "VLLM_CPU_KVCACHE_SPACE";
  constexpr int kMost = 1 << 20;
  const std::string text = environment(kName);
  int gib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gib);
  if (text.empty()) return {};
  if (error != std::errc{} || end != text.data() + text.size() || gib < 0 || gib > kMost)
    return invalid(kName, "must be an integer in [0, {}], got {}", kMost, text);
  const bool on_gpu = engine.device.type == "cuda" || (engine.device.type == "auto" && make_cuda_backend());
  if (!on_gpu && engine.cache.memory_bytes == 0)
    engine.cache.memory_bytes = static_cast<std::int64_t>(gib) << 30;
  return {};
}

}  // namespace

Result<> take_kv_environment(RuntimeCommand& command, const hub::Environment& environment) {
  KvTransferOptions& options = command.runtime.engine.kv_transfer;
  TRY_VOID(take_cpu_cache(command.runtime.engine, environment));
  TRY_VOID(take_side_channel(options, environment));
  take_store_keys(options, environment);
  return take_offloading(command.kv_offloading, options, environment);
}

}  // namespace octavo
