// Times at which a benchmark sends its requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo::traffic {

enum class RampUp : std::uint8_t { none, linear, exponential };

struct ArrivalOptions {
  double request_rate = 0;  // requests/s; 0 sends all at once
  double burstiness = 1;    // shape of the gamma distribution of the gaps: 1 is Poisson, lower values are
                            // burstier
  RampUp ramp_up = RampUp::none;
  double ramp_up_start = 0;  // requests/s at the first and the last request; replace request_rate
  double ramp_up_end = 0;
  std::uint64_t seed = 0;
};

// Returns times in microseconds from the start, ascending. As in vLLM, the last time is always count / rate,
// so that equal rates give equal durations.
std::vector<std::int64_t> arrival_times(std::size_t count, const ArrivalOptions& options);

}  // namespace octavo::traffic
