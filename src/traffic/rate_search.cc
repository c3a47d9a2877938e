#include "traffic/rate_search.h"

#include <algorithm>
#include <cmath>

namespace octavo::traffic {

bool RateSearch::done() const {
  if (good_ == 0) return bad_ != 0 && bad_ <= first_ / 16;
  if (bad_ == 0) return good_ > first_ * 65'536;
  return bad_ - good_ <= precision_ * good_;
}

double RateSearch::next() const {
  if (good_ == 0) return bad_ == 0 ? first_ : bad_ / 2;
  return bad_ == 0 ? good_ * 2 : std::sqrt(good_ * bad_);
}

void RateSearch::add(double rate, bool good) {
  if (good)
    good_ = std::max(good_, rate);
  else
    bad_ = bad_ == 0 ? rate : std::min(bad_, rate);
}

}  // namespace octavo::traffic
