#include "fleet/flow/reclamation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000;

class ReclamationTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> victims(double saturation, std::vector<BlockedBand> blocked = {{0, 1}}) {
    return running_.victims(saturation, blocked, now_);
  }

  Reclamation running_;
  std::int64_t now_ = kSecond;
};

TEST_F(ReclamationTest, TheLowestAndNewestEnd) {
  running_.started(1, -1, 10);
  running_.started(2, -5, 20);
  running_.started(3, -5, 30);
  running_.started(4, 0, 40);
  EXPECT_THAT(victims(0.9), IsEmpty()) << "there is room";
  EXPECT_THAT(victims(1.2, {}), IsEmpty()) << "nobody waits";
  EXPECT_THAT(victims(1.2, {{-5, 1}}), IsEmpty()) << "they are not below it";
  EXPECT_THAT(victims(1.2, {{0, 0}}), IsEmpty()) << "no room would be enough";
  EXPECT_THAT(victims(1), ElementsAre(3)) << "one at least";
  EXPECT_THAT(victims(1), IsEmpty()) << "it has not ended";
  running_.ended(3, now_);
  EXPECT_THAT(victims(1), IsEmpty()) << "what it held does not show yet";
  now_ += kSecond / 2;
  EXPECT_THAT(victims(1.9), ElementsAre(2, 1)) << "two at most, a third of saturation each";
  running_.ended(1, now_);
  now_ += kSecond;
  EXPECT_THAT(victims(1.9), IsEmpty()) << "one has not ended";
  now_ += 9 * kSecond;
  EXPECT_THAT(victims(1.9), IsEmpty()) << "it is no longer waited for";
  running_.started(5, -1, now_);
  now_ += kSecond / 2;
  EXPECT_THAT(victims(1.9), ElementsAre(5));
}

TEST_F(ReclamationTest, AsManyAsAreMissing) {
  for (std::uint64_t id = 1; id <= 10; ++id) running_.started(id, -1, static_cast<std::int64_t>(id));
  EXPECT_THAT(victims(1.05), ElementsAre(10)) << "one is a tenth of it";
  running_.ended(10, now_);
  now_ += kSecond;
  EXPECT_THAT(victims(1.2), ElementsAre(9, 8));
}

TEST_F(ReclamationTest, AVictimStaysBelowWhoWaits) {
  running_.started(1, -3, 1);
  running_.started(2, -1, 2);
  EXPECT_THAT(victims(5, {{-2, 1}}), ElementsAre(1));
}

TEST_F(ReclamationTest, WhoEndsByItselfIsForgotten) {
  running_.started(1, -1, 1);
  running_.ended(1, 2);
  running_.ended(1, 2);
  EXPECT_THAT(victims(2), IsEmpty());
}

}  // namespace
}  // namespace octavo::fleet
