// Measures the power of the processors with the energy counters of Linux powercap (RAPL). The counters
// include all programs on the machine. On most systems, only root can read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

class EnergyMeter {
 public:
  static constexpr std::int64_t kSampleNs = 100'000'000;  // minimum time between two samples, because reading
                                                          // a counter takes some microseconds

  // `folder` differs from the default only in tests.
  explicit EnergyMeter(const std::string& folder = "/sys/class/powercap");
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  bool readable() const { return !packages_.empty(); }
  // Returns the mean power between the last two samples, or 0 if it is unknown. Takes a new sample if the
  // last one is older than kSampleNs.
  double microjoules_per_ns(std::int64_t now_ns);

 private:
  struct Package {
    int file;
    std::int64_t range;  // the counter restarts at 0 after this value
    std::int64_t last;
  };

  std::vector<Package> packages_;
  std::int64_t sampled_ns_ = 0;  // 0: not sampled yet
  double power_ = 0;
};

}  // namespace octavo
