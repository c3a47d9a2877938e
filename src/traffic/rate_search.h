// Finds the highest rate that a server sustains: doubles the rate until it is too high, then bisects.
#pragma once

namespace octavo::traffic {

class RateSearch {
 public:
  // first: first rate, in requests/s. The search ends when the lowest bad rate exceeds the highest good rate
  // by at most the fraction `precision`, when first / 16 is too high, or when first * 65,536 is not too high.
  RateSearch(double first, double precision) : first_(first), precision_(precision) {}

  bool done() const;
  double next() const;
  void add(double rate, bool good);

  double best() const { return good_; }  // highest good rate; 0: none

 private:
  double first_, precision_;
  double good_ = 0, bad_ = 0;  // highest good rate and lowest bad rate; 0: none
};

}  // namespace octavo::traffic
