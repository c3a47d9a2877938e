// Decides whether an engine is restarted after its death, and after how long.
#pragma once

#include <chrono>
#include <optional>

namespace octavo::remote {

class RestartPolicy {
 public:
  // After this number of deaths in a row, the engine is not restarted.
  static constexpr int kDeathsMax = 6;
  static constexpr std::chrono::milliseconds kWait{
      300};  // times the number of deaths in a row before this one

  // Call when the engine has died. worked: it had returned a token or lived long, so its start was not the
  // cause. Returns the wait before the restart; nullopt: do not restart.
  std::optional<std::chrono::milliseconds> died(bool worked) {
    deaths_ = worked ? 1 : deaths_ + 1;
    if (deaths_ >= kDeathsMax) return std::nullopt;
    return kWait * (deaths_ - 1);
  }
  int deaths() const { return deaths_; }  // number of deaths in a row; a restart does not reset it

 private:
  int deaths_ = 0;
};

}  // namespace octavo::remote
