// The timing of a model on a device from their published figures.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "timing/step_timing.h"

namespace octavo {

struct ModelFigures {
  double weight_bytes = 0;
  double operations_per_token = 0;  // of matrix products; a multiplication and an addition are two
  double operations_per_pair = 0;   // of attention, for a query and a key
  double kv_bytes_per_token = 0;
};

struct DeviceFigures {
  double bytes_per_second = 0;
  double operations_per_second = 0;  // dense, in the format of the products
  double memory_bytes = 0;
  double bandwidth_share = 0.8;  // of the peaks: what kernels reach
  double compute_share = 0.6;
  double step_us = 1000;  // of a step, whatever it computes
};

template <class Figures>
struct Named {
  std::string_view name;
  Figures figures;
};
std::span<const Named<ModelFigures>> known_models();    // bf16
std::span<const Named<DeviceFigures>> known_devices();  // one device, bf16

// Over `devices` of them, tensor-parallel; what they tell each other is a part of the shares and of step_us.
StepTiming roofline(const ModelFigures& model, const DeviceFigures& device, int devices);

// Tokens whose KV fits beside the weights in this share of the memory. Error: none (field: "model").
Result<std::int64_t> cache_tokens(const ModelFigures& model, const DeviceFigures& device, int devices,
                                  double memory_share);

}  // namespace octavo
