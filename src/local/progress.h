// A progress bar on standard error, for people only: nothing is shown when it is not a terminal, or all is
// over quickly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace octavo {

class ProgressBar {
 public:
  // Shows amounts divided by `scale`, in `unit`.
  ProgressBar(std::string label, std::string unit, double scale);
  ~ProgressBar() { finish(); }

  // Any thread, at any rate; draws a few times a second.
  void show(std::size_t done, std::size_t all);
  // Wipes the bar away.
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

}  // namespace octavo
