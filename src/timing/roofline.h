// Estimates the step times of a model on a device from published figures of both.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "timing/step_timing.h"

namespace octavo {

struct ModelFigures {
  double weight_bytes = 0;
  double operations_per_token = 0;  // matrix products; a multiply-add counts as two operations
  double operations_per_pair = 0;   // attention of one query and one key
  double kv_bytes_per_token = 0;
};

struct DeviceFigures {
  double bytes_per_second = 0;
  double operations_per_second = 0;  // peak of dense matrix products
  double memory_bytes = 0;
  double bandwidth_share = 0.8;  // fraction of the peak bandwidth that kernels reach
  double compute_share = 0.6;
  double step_us = 1000;  // fixed time of a step, in microseconds
};

template <class Figures>
struct Named {
  std::string_view name;
  Figures figures;
};
// The figures of all known models and devices are those of bf16. Each device is a single GPU.
std::span<const Named<ModelFigures>> known_models();
std::span<const Named<DeviceFigures>> known_devices();

// Returns the timing on `devices` devices with tensor parallelism. There is no separate term for
// communication: the two shares and step_us include it.
StepTiming roofline(const ModelFigures& model, const DeviceFigures& device, int devices);

// Returns the number of tokens whose KV fits into memory if weights and KV cache together use the fraction
// memory_share of the device memory. Returns an error on "model" if no token fits.
Result<std::int64_t> cache_tokens(const ModelFigures& model, const DeviceFigures& device, int devices,
                                  double memory_share);

}  // namespace octavo
