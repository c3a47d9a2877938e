// Progress bar on standard error. It is shown only on a terminal, and only if the work takes a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace octavo {

class ProgressBar {
 public:
  // Amounts are divided by `scale` and shown in `unit`.
  ProgressBar(std::string label, std::string unit, double scale);
  ~ProgressBar() { finish(); }

  // Any thread may call it often: the bar is drawn only a few times a second.
  void show(std::size_t done, std::size_t all);
  // Removes the bar.
  void finish();

 private:
  std::mutex mutex_;
  std::string label_;
  std::string unit_;
  double scale_;
  bool visible_;
  bool drawn_ = false;
  std::int64_t started_us_;
  std::int64_t drawn_us_ = 0;
};

// Progress bars of several runs, one after another. The label identifies the run.
class ProgressBars {
 public:
  void show(const std::string& label, std::size_t done, std::size_t all);

 private:
  std::string label_;
  std::optional<ProgressBar> bar_;
};

}  // namespace octavo
