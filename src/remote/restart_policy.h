// Decides whether and when an engine is restarted after its death.
#pragma once

#include <chrono>
#include <optional>

namespace octavo::remote {

class RestartPolicy {
 public:
  // Number of consecutive deaths after which the engine is not restarted.
  static constexpr int kDeathsMax = 6;
  static constexpr std::chrono::milliseconds kWait{
      300};  // multiplied by the number of consecutive deaths before this one

  // Called when the engine has died. worked: the engine had returned a token or lived long, so its start was
  // not the cause. Returns the wait before the restart; nullopt: no restart.
  std::optional<std::chrono::milliseconds> died(bool worked) {
    deaths_ = worked ? 1 : deaths_ + 1;
    if (deaths_ >= kDeathsMax) return std::nullopt;
    return kWait * (deaths_ - 1);
  }
  int deaths() const { return deaths_; }  // number of consecutive deaths; a restart does not reset it

 private:
  int deaths_ = 0;
};

}  // namespace octavo::remote
