// Finds the highest request rate that a server sustains: doubles the rate until it is too high, then
// bisects.
#pragma once

namespace octavo::traffic {

class RateSearch {
 public:
  // first: rate to begin with, in requests/s. The search ends when bad_ - good_ is at most precision * good_.
  // It also ends when a rate of at most first / 16 is too high, or when a rate above first * 65,536 is good.
  RateSearch(double first, double precision) : first_(first), precision_(precision) {}

  bool done() const;
  double next() const;
  void add(double rate, bool good);

  double best() const { return good_; }  // 0: no rate was good

 private:
  double first_, precision_;
  double good_ = 0, bad_ = 0;  // highest good rate and lowest bad rate; 0: none yet
};

}  // namespace octavo::traffic
