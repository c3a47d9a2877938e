#include "fleet/peers/load_message.h"

#include <gtest/gtest.h>

#include <limits>

#include "fleet/view/fleet_view.h"

namespace octavo::fleet {
namespace {

LoadMessage some() {
  return {.sender = std::numeric_limits<PeerId>::max() - 3,
          .all = true,
          .workers = {{"10.0.0.1:8000", {3, 1'000, 70'000, 500}}, {"[::1]:8000", {}}}};
}

TEST(LoadMessage, IsReadAsItWasWritten) {
  EXPECT_EQ(read_load_message(write_load_message(some())).value(), some());
  const LoadMessage nothing{.sender = 1};
  EXPECT_EQ(read_load_message(write_load_message(nothing)).value(), nothing);
}

TEST(LoadMessage, OneThatIsCutShortIsRefused) {
  const std::string whole = write_load_message(some());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_load_message(whole.substr(0, size))) << size;
}

TEST(LoadMessage, LoadsThatCannotBeAreRefused) {
  const auto refused = [](const Load& load) {
    LoadMessage message = some();
    message.workers[0].load = load;
    return !read_load_message(write_load_message(message));
  };
  EXPECT_FALSE(refused({1, 2, 3, 4}));
  EXPECT_TRUE(refused({-1, 0, 0, 0}));
  EXPECT_TRUE(refused({std::numeric_limits<int>::max(), 0, 0, 0}));
  EXPECT_TRUE(refused({1, std::numeric_limits<std::int64_t>::max(), 0, 0}));
  EXPECT_TRUE(refused({1, 0, -1, 0}));
  LoadMessage many{.workers = std::vector<WorkerLoad>(kEndpointsMax + 1)};
  EXPECT_FALSE(read_load_message(write_load_message(many)));
}

}  // namespace
}  // namespace octavo::fleet
