#include "timing/roofline.h"

#include <algorithm>

namespace octavo {
namespace {

// Computes the figures of a dense decoder from numbers in its config.json. An embedding is a table lookup
// and counts no operations.
constexpr ModelFigures dense(double parameters, double embedding, double layers, double query_width,
                             double kv_width) {
  return {.weight_bytes = 2 * parameters,
          .operations_per_token = 2 * (parameters - embedding),
          .operations_per_pair = 4 * layers * query_width,
          .kv_bytes_per_token = 2 * 2 * layers * kv_width};
}

constexpr Named<ModelFigures> kModels[] = {
    {"llama-3.1-8b", dense(8.03e9, 128256.0 * 4096, 32, 4096, 1024)},
    {"llama-3.1-70b", dense(70.55e9, 128256.0 * 8192, 80, 8192, 1024)},
    {"qwen3-32b", dense(32.76e9, 151936.0 * 5120, 64, 8192, 1024)},
};

constexpr Named<DeviceFigures> kDevices[] = {
    {"a100-80g", {.bytes_per_second = 2.04e12, .operations_per_second = 312e12, .memory_bytes = 85.9e9}},
    {"h100", {.bytes_per_second = 3.35e12, .operations_per_second = 989e12, .memory_bytes = 85.5e9}},
    {"h200", {.bytes_per_second = 4.8e12, .operations_per_second = 989e12, .memory_bytes = 150.7e9}},
    {"l40s", {.bytes_per_second = 0.864e12, .operations_per_second = 362e12, .memory_bytes = 48.3e9}},
};

}  // namespace

std::span<const Named<ModelFigures>> known_models() { return kModels; }
std::span<const Named<DeviceFigures>> known_devices() { return kDevices; }

StepTiming roofline(const ModelFigures& model, const DeviceFigures& device, int devices) {
  const double bytes_per_us = device.bytes_per_second * device.bandwidth_share * devices * 1e-6;
  const double operations_per_us = device.operations_per_second * device.compute_share * devices * 1e-6;
  return {.fixed_us = device.step_us,
          .weights_us = model.weight_bytes / bytes_per_us,
          .token_us = model.operations_per_token / operations_per_us,
          .kv_token_us = model.kv_bytes_per_token / bytes_per_us,
          .pair_us = model.operations_per_pair / operations_per_us};
}

Result<std::int64_t> cache_tokens(const ModelFigures& model, const DeviceFigures& device, int devices,
                                  double memory_share) {
  const double memory = device.memory_bytes * devices * memory_share;
  const double room = (memory - model.weight_bytes) / model.kv_bytes_per_token;
  const auto tokens = static_cast<std::int64_t>(std::clamp(room, 0.0, 1e15));
  if (tokens > 0) return tokens;
  return invalid("model", "{:.1f} GB of weights leave no space for a KV cache in {:.1f} GB of memory",
                 model.weight_bytes * 1e-9, memory * 1e-9);
}

}  // namespace octavo
