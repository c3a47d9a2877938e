// Decides whether and when EngineProcess restarts a process that died.
#pragma once

#include <chrono>
#include <optional>

namespace octavo::remote {

class RestartPolicy {
 public:
  // After this number of deaths in a row, the process is not restarted any more.
  static constexpr int kDeathsMax = 6;
  static constexpr std::chrono::milliseconds kWait{
      300};  // wait before a restart; multiplied by the number of earlier deaths in a row

  // Call it after a death. worked: the process had returned a token or was old enough, so its start was not
  // the cause. Returns the time to wait before the restart; nullopt: no restart.
  std::optional<std::chrono::milliseconds> died(bool worked) {
    deaths_ = worked ? 1 : deaths_ + 1;
    if (deaths_ >= kDeathsMax) return std::nullopt;
    return kWait * (deaths_ - 1);
  }
  // deaths in a row; a successful restart does not reset the number
  int deaths() const { return deaths_; }

 private:
  int deaths_ = 0;
};

}  // namespace octavo::remote
