#include "fleet/proxy/dispatcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace octavo::fleet {
namespace {

EndpointId join(Dispatcher& dispatcher, const std::string& name) {
  const EndpointId id = dispatcher.add({.name = name, .url = "http://" + name}).value();
  dispatcher.probed(id, true);
  return id;
}

int chosen(Dispatcher& dispatcher, EndpointId id, int requests) {
  int times = 0;
  for (int i = 0; i < requests; ++i) {
    Choice choice = dispatcher.choose({}, Role::both, {}, false);
    times += choice.booking.endpoint == id;
    dispatcher.ended(choice.booking, Outcome::success);
  }
  return times;
}

TEST(Dispatcher, WhoComesGetsItsShareByAndBy) {
  constexpr int kRequests = 400;
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin", .slow_start_secs = 86'400});
  const std::int64_t began = now_us();
  join(*dispatcher, "old:80");
  EXPECT_EQ(chosen(*dispatcher, 0, kRequests), kRequests) << "alone";
  // How much a new one may have got by now depends on the machine: again with an older fleet, until it is
  // little.
  double share = 1;
  int times = 0;
  for (int wait_ms = 100; share > 0.1; wait_ms *= 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    const std::int64_t joined = now_us();
    const EndpointId fresh = join(*dispatcher, "new:80");
    times = chosen(*dispatcher, fresh, kRequests);
    const std::int64_t now = now_us();
    share = static_cast<double>(now - joined) / static_cast<double>(now - began);
    dispatcher->remove(fresh);
  }
  EXPECT_LT(times, kRequests / 5) << "half of a share of a tenth, in turn";
}

TEST(Dispatcher, OneThatIsAloneIsAskedHoweverNew) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin", .slow_start_secs = 86'400});
  const EndpointId old = join(*dispatcher, "old:80");
  const EndpointId fresh = join(*dispatcher, "new:80");
  for (int i = 0; i < 50; ++i) {
    Choice choice = dispatcher->choose({}, Role::both, {{old}}, false);
    EXPECT_EQ(choice.booking.endpoint, fresh);
    dispatcher->ended(choice.booking, Outcome::success);
  }
}

}  // namespace
}  // namespace octavo::fleet
