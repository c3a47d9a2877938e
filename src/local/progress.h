// A progress bar on standard error. It is hidden if standard error is not a terminal, or if the work ends
// quickly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace octavo {

class ProgressBar {
 public:
  // unit, scale: amounts are divided by `scale` and shown in `unit`.
  ProgressBar(std::string label, std::string unit, double scale);
  ~ProgressBar() { finish(); }

  // Sets the progress. May be called often and from any thread: the bar is redrawn only a few times a
  // second.
  void show(std::size_t done, std::size_t all);
  // Removes the bar from the terminal.
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

// Progress bars of successive runs. The label identifies a run.
class ProgressBars {
 public:
  void show(const std::string& label, std::size_t done, std::size_t all);

 private:
  std::string label_;
  std::optional<ProgressBar> bar_;
};

}  // namespace octavo
