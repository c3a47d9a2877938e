// Counts of values in buckets, as in Prometheus.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace octavo {

class Histogram {
 public:
  // bounds: upper bounds of the buckets, ascending, without +Inf.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value) {
    ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin())];
    sum_ += value;
  }

  // Sets the counts to those of another histogram with the same bounds. If the number of buckets differs, it
  // changes nothing and returns false.
  bool assign(std::span<const std::int64_t> counts, double sum) {
    if (counts.size() != counts_.size()) return false;
    counts_.assign(counts.begin(), counts.end());
    sum_ = sum;
    return true;
  }

  std::span<const double> bounds() const { return bounds_; }
  std::span<const std::int64_t> counts() const { return counts_; }  // per bucket, not cumulative
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::int64_t> counts_;
  double sum_ = 0;
};

}  // namespace octavo
