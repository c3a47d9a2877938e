// Metrics with labels, for /metrics pages. Not thread-safe. The caller must limit the number of label
// values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "request/histogram.h"

namespace octavo::fleet {

// Returns the labels in the form a="1",b="2".
std::string label_text(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);

class CounterFamily {
 public:
  void add(const std::string& labels, std::int64_t n) { values_[labels] += n; }
  bool contains(const std::string& labels) const { return values_.contains(labels); }
  std::size_t size() const { return values_.size(); }
  void write(std::string& out, std::string_view name, std::string_view help,
             std::string_view type = "counter") const;

 private:
  std::map<std::string, std::int64_t> values_;
};

class HistogramFamily {
 public:
  explicit HistogramFamily(std::vector<double> bounds) : bounds_(std::move(bounds)) {}
  void observe(const std::string& labels, double value);
  void write(std::string& out, std::string_view name, std::string_view help) const;

 private:
  std::vector<double> bounds_;
  std::map<std::string, Histogram> values_;
};

}  // namespace octavo::fleet
