#include "traffic/rate_search.h"

#include <gtest/gtest.h>

namespace octavo::traffic {
namespace {

struct Found {
  double rate;
  int runs;
};

Found search(double first, double limit, double precision) {
  RateSearch rates(first, precision);
  int runs = 0;
  for (; !rates.done() && runs < 100; ++runs) rates.add(rates.next(), rates.next() <= limit);
  return {rates.best(), runs};
}

TEST(RateSearch, FindsTheLimitFromAboveAndFromBelow) {
  for (const double first : {0.25, 1.0, 64.0, 500.0}) {
    const Found found = search(first, 37, 0.05);
    EXPECT_LE(found.rate, 37);
    EXPECT_GE(found.rate, 37 / 1.05);
    EXPECT_LE(found.runs, 16);
  }
}

TEST(RateSearch, EndsWhereNoRateIsGoodAndWhereAllAre) {
  EXPECT_EQ(search(1, 0, 0.05).rate, 0);
  EXPECT_LE(search(1, 0, 0.05).runs, 5);
  EXPECT_GE(search(1, 1e300, 0.05).rate, 65'536);
  EXPECT_LE(search(1, 1e300, 0.05).runs, 18);
}

}  // namespace
}  // namespace octavo::traffic
