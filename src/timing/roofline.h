// Computes the timing of a model on a device from their published figures.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "timing/step_timing.h"

namespace octavo {

struct ModelFigures {
  double weight_bytes = 0;
  double operations_per_token = 0;  // matrix products; a multiplication and an addition are two operations
  double operations_per_pair = 0;   // attention of one query to one key
  double kv_bytes_per_token = 0;
};

struct DeviceFigures {
  double bytes_per_second = 0;
  double operations_per_second = 0;  // dense, in the number format of the products
  double memory_bytes = 0;
  double bandwidth_share = 0.8;  // share of the peak that kernels reach
  double compute_share = 0.6;
  double step_us = 1000;  // fixed time of a step
};

template <class Figures>
struct Named {
  std::string_view name;
  Figures figures;
};
std::span<const Named<ModelFigures>> known_models();    // in bf16
std::span<const Named<DeviceFigures>> known_devices();  // one device, in bf16

// Timing of the model on `devices` devices (tensor parallel). The shares and step_us include communication.
StepTiming roofline(const ModelFigures& model, const DeviceFigures& device, int devices);

// Number of tokens whose KV fits into this share of the memory beside the weights. Error: no token fits
// (field: "model").
Result<std::int64_t> cache_tokens(const ModelFigures& model, const DeviceFigures& device, int devices,
                                  double memory_share);

}  // namespace octavo
