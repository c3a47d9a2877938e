#include "local/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/clock.h"

namespace octavo {
namespace {

constexpr std::int64_t kPatienceUs = 300'000;  // a bar is shown only if the work takes longer than this time
constexpr std::int64_t kPeriodUs = 100'000;
constexpr int kCells = 30;

}  // namespace

ProgressBar::ProgressBar(std::string label, std::string unit, double scale)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      scale_(scale),
      visible_(isatty(STDERR_FILENO) == 1),
      started_us_(now_us()) {}

void ProgressBar::show(std::size_t done, std::size_t all) {
  if (!visible_ || all == 0) return;
  const std::lock_guard lock(mutex_);
  const std::int64_t now = now_us();
  if (now - started_us_ < kPatienceUs || now - drawn_us_ < kPeriodUs) return;
  drawn_us_ = now;
  drawn_ = true;
  const auto amount = static_cast<double>(done) / scale_;
  const int filled = static_cast<int>(kCells * static_cast<double>(done) / static_cast<double>(all));
  const double rate = amount / (static_cast<double>(now - started_us_) * 1e-6);
  fmt::print(stderr, "\r\x1b[K{} [{:=<{}}{: <{}}] {:.2f}/{:.2f} {} ({:.2f}/s)", label_, "", filled, "",
             kCells - filled, amount, static_cast<double>(all) / scale_, unit_, rate);
  std::fflush(stderr);
}

void ProgressBar::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(drawn_, false)) fmt::print(stderr, "\r\x1b[K");
  visible_ = false;
}

void ProgressBars::show(const std::string& label, std::size_t done, std::size_t all) {
  if (!bar_ || label != label_) bar_.emplace(label_ = label, "requests", 1);
  bar_->show(done, all);
}

}  // namespace octavo
