// Estimates when a session continues, from the pauses between turns of an owner's sessions.
#pragma once

#include <cstdint>

namespace octavo {

// Pauses are modelled as log-normal. Mean and variance of their logarithms are moving averages.
class ReuseEstimate {
 public:
  void observe(std::int64_t pause_us);

  // Returns the probability that a session that has paused for idle_us continues within one more median
  // pause. The estimate includes sessions that have ended without notice.
  double chance(std::int64_t idle_us) const;

 private:
  double survival(double seconds) const;  // fraction of pauses that are longer than `seconds`

  std::int64_t pauses_ = 0;
  double mean_ = 0.7;  // mean of ln(pause in seconds); 0.7: a median pause of 2 s
  double variance_ = 1.5;
};

}  // namespace octavo
