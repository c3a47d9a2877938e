// Finds the highest rate that a server sustains: doubles the rate until it is too high, then bisects.
#pragma once

namespace octavo::traffic {

class RateSearch {
 public:
  // first: first rate to measure, in requests/s. The search ends when the lowest bad rate exceeds the highest
  // good rate by at most the fraction `precision`. It also ends if first / 16 is still too high, or if first
  // * 65,536 is still not too high.
  RateSearch(double first, double precision) : first_(first), precision_(precision) {}

  bool done() const;
  double next() const;  // the rate to measure now
  void add(double rate, bool good);

  double best() const { return good_; }  // highest good rate; 0: no rate was good

 private:
  double first_, precision_;
  double good_ = 0, bad_ = 0;  // highest good rate and lowest bad rate; 0 if unknown
};

}  // namespace octavo::traffic
