// A Prometheus histogram: counts of values in buckets.
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
  // `bounds` are the upper bounds of the buckets, in ascending order, without +Inf.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value) {
    ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin())];
    sum_ += value;
  }

  // Replaces the counts. If the number of counts does not match the buckets, changes nothing and
  // returns false.
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
