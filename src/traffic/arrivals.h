// Computes when a benchmark sends its requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo::traffic {

enum class RampUp : std::uint8_t { none, linear, exponential };

struct ArrivalOptions {
  double request_rate = 0;  // requests/s; 0: all requests at once
  double burstiness = 1;    // shape of the gamma distribution of gaps; 1: Poisson; below 1: burstier
  RampUp ramp_up = RampUp::none;
  // Rate in requests/s at the first and at the last request. Both replace request_rate.
  double ramp_up_start = 0;
  double ramp_up_end = 0;
  std::uint64_t seed = 0;
};

// Returns ascending times in microseconds from the start. As in vLLM, they are scaled so that the last one
// is count / rate, so equal rates give equal durations.
std::vector<std::int64_t> arrival_times(std::size_t count, const ArrivalOptions& options);

}  // namespace octavo::traffic
