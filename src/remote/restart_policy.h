// Decides whether another engine is started after a death, and after which wait.
#pragma once

#include <chrono>
#include <optional>

namespace octavo::remote {

class RestartPolicy {
 public:
  // After n deaths in a row no engine is started any more.
  static constexpr int kDeathsMax = 6;
  static constexpr std::chrono::milliseconds kWait{
      300};  // times the number of deaths in a row before this one

  // worked: the engine has returned a token or lived long, so its start was not the cause. nullopt: no engine
  // is started any more.
  std::optional<std::chrono::milliseconds> died(bool worked) {
    deaths_ = worked ? 1 : deaths_ + 1;
    if (deaths_ >= kDeathsMax) return std::nullopt;
    return kWait * (deaths_ - 1);
  }
  int deaths() const { return deaths_; }  // in a row; it stays after a restart

 private:
  int deaths_ = 0;
};

}  // namespace octavo::remote
