// The highest rate that a server takes, found by asking it: doubled until one is too high, then halved in
// between.
#pragma once

namespace octavo::traffic {

class RateSearch {
 public:
  // first: the rate that is asked first, requests/s. Ends when the highest good rate and the lowest bad one
  // are no further apart than `precision` times the former; or where first / 16 is too high, or first *
  // 65,536 is not.
  RateSearch(double first, double precision) : first_(first), precision_(precision) {}

  bool done() const;
  double next() const;  // the rate to measure now
  void add(double rate, bool good);

  double best() const { return good_; }  // 0: none was good

 private:
  double first_, precision_;
  double good_ = 0, bad_ = 0;  // the highest good one and the lowest bad one; 0: none yet
};

}  // namespace octavo::traffic
