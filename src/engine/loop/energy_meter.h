// Power of the processors, from the energy counters of Linux' powercap (RAPL). They count all programs of the
// machine. Most systems let only root read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

class EnergyMeter {
 public:
  static constexpr std::int64_t kSampleNs = 100'000'000;  // reading a counter takes some microseconds

  // folder: /sys/class/powercap, or another folder in tests.
  explicit EnergyMeter(const std::string& folder = "/sys/class/powercap");
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  bool readable() const { return !packages_.empty(); }
  // Returns the mean power between the last two samples; 0: unknown. Samples if the last sample is older than
  // kSampleNs.
  double microjoules_per_ns(std::int64_t now_ns);

 private:
  struct Package {
    int file;
    std::int64_t range;  // the counter starts again at 0 after this value
    std::int64_t last;   // its value at the last sample
  };

  std::vector<Package> packages_;
  std::int64_t sampled_ns_ = 0;  // 0: not sampled yet
  double power_ = 0;
};

}  // namespace octavo
