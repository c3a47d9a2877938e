#include "fleet/proxy/dispatcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace octavo::fleet {
namespace {

EndpointId join(Dispatcher& dispatcher, const std::string& name) {
  const EndpointId id = dispatcher.add({.name = name, .url = "http://" + name}).value();
  dispatcher.probed(id, *dispatcher.fleet().view()->find(id)->endpoint, true);
  return id;
}

int chosen(Dispatcher& dispatcher, EndpointId id, int requests) {
  int times = 0;
  for (int i = 0; i < requests; ++i) {
    Choice choice = dispatcher.choose({}, {});
    times += choice.booking.endpoint == id;
    dispatcher.ended(choice, Outcome::success);
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
    Choice choice = dispatcher->choose({}, {.excluded = {{old}}});
    EXPECT_EQ(choice.booking.endpoint, fresh);
    dispatcher->ended(choice, Outcome::success);
  }
}

TEST(Dispatcher, RequestsOfOtherRoutersCount) {
  for (const char* policy : {"least_loaded", "power_of_two", "kv_aware"}) {
    const auto dispatcher = *Dispatcher::make({.policy = policy});
    const EndpointId a = join(*dispatcher, "a:80"), b = join(*dispatcher, "b:80");
    const Load busy{.requests = 5, .prefill_tokens = 5'000, .context_tokens = 5'000, .own_tokens = 5'000};
    const LoadMessage told{.sender = 7, .all = true, .workers = {{"a:80", busy}, {"unknown:80", busy}}};
    dispatcher->peer_told(told);
    EXPECT_EQ(chosen(*dispatcher, b, 20), 20) << policy;
    EXPECT_EQ(dispatcher->load_of_peers(a).requests, 5);
    EXPECT_EQ(dispatcher->load(a).requests, 0) << "its own";
    dispatcher->peer_told({.sender = 7, .all = true, .workers = {{"b:80", busy}}});
    EXPECT_EQ(chosen(*dispatcher, a, 20), 20) << policy;
    const Load busier{.requests = 9, .prefill_tokens = 9'000, .context_tokens = 9'000, .own_tokens = 9'000};
    dispatcher->peer_told({.sender = 7, .workers = {{"a:80", busier}}});
    EXPECT_EQ(chosen(*dispatcher, b, 20), 20) << policy;
    dispatcher->peer_gone(7);
    EXPECT_EQ(dispatcher->load_of_peers(a), Load{});
    EXPECT_EQ(dispatcher->load_of_peers(b), Load{});
  }
}

TEST(Dispatcher, WhatPeersHadAtAWorkerThatLeftDoesNotCountForTheNextOne) {
  const auto dispatcher = *Dispatcher::make({.policy = "least_loaded"});
  const EndpointId gone = join(*dispatcher, "a:80");
  dispatcher->peer_told({.sender = 7, .workers = {{"a:80", {.requests = 5}}}});
  ASSERT_TRUE(dispatcher->remove(gone));
  const EndpointId fresh = join(*dispatcher, "b:80");
  EXPECT_EQ(fresh, gone) << "its number is used again";
  EXPECT_EQ(dispatcher->load_of_peers(fresh), Load{});
}

TEST(Dispatcher, TellsWhatHasChanged) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin"});
  int changes = 0;
  dispatcher->watch_loads([&] { ++changes; });
  join(*dispatcher, "a:80");
  join(*dispatcher, "b:80");
  EXPECT_TRUE(dispatcher->changed_loads(true).empty());
  Choice first = dispatcher->choose({.tokens = {1, 2, 3}}, {});
  Choice second = dispatcher->choose({.tokens = {1}}, {});
  EXPECT_EQ(changes, 1) << "once until it was asked";
  EXPECT_EQ(dispatcher->changed_loads(false).size(), 2u);
  EXPECT_TRUE(dispatcher->changed_loads(false).empty());
  dispatcher->first_token(first);
  EXPECT_EQ(changes, 2);
  const std::string name = first.endpoint->name;
  EXPECT_EQ(dispatcher->changed_loads(false), (std::vector<WorkerLoad>{{name, {1, 0, 3, 3}}}));
  dispatcher->ended(first, Outcome::success);
  EXPECT_EQ(dispatcher->changed_loads(false), (std::vector<WorkerLoad>{{name, {}}}));
  EXPECT_EQ(dispatcher->changed_loads(true),
            (std::vector<WorkerLoad>{{second.endpoint->name, {1, 1, 1, 1}}}));
  dispatcher->ended(second, Outcome::success);
}

TEST(Dispatcher, PrioritiesComeFirst) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin"});
  const auto ranked = [&](const std::string& name, int priority) {
    const EndpointId id = dispatcher->add({.name = name, .url = "http://" + name, .priority = priority}).value();
    dispatcher->probed(id, *dispatcher->fleet().view()->find(id)->endpoint, true);
    return id;
  };
  const EndpointId second = ranked("b:80", 20), first = ranked("a:80", 10), third = ranked("c:80", 30);
  EXPECT_EQ(chosen(*dispatcher, first, 20), 20);
  for (const auto& [excluded, next] : {std::pair(std::vector{first}, second), {{first, second}, third}}) {
    Choice choice = dispatcher->choose({}, {.excluded = excluded});
    EXPECT_EQ(choice.booking.endpoint, next) << "where all that are better have failed";
    dispatcher->ended(choice, Outcome::success);
  }
  dispatcher->rank({.name = "c:80", .priority = 5});
  EXPECT_EQ(chosen(*dispatcher, third, 20), 20) << "the records have changed";
}

TEST(Dispatcher, WhoHasASmallWeightIsPassedOverAsOften) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin"});
  const auto weighted = [&](const std::string& name, int weight) {
    const EndpointId id = dispatcher->add({.name = name, .url = "http://" + name, .weight = weight}).value();
    dispatcher->probed(id, *dispatcher->fleet().view()->find(id)->endpoint, true);
    return id;
  };
  const EndpointId large = weighted("a:80", 100), small = weighted("b:80", 20), none = weighted("c:80", 0);
  const int times = chosen(*dispatcher, small, 2000);
  // It may get a fifth of them, and gets those that do not follow one of its own: a sixth, some 333.
  EXPECT_GT(times, 200);
  EXPECT_LT(times, 450);
  EXPECT_EQ(chosen(*dispatcher, none, 200), 0) << "while others are there";
  Choice choice = dispatcher->choose({}, {.excluded = {{large, small}}});
  EXPECT_EQ(choice.booking.endpoint, none);
  dispatcher->ended(choice, Outcome::success);
}

TEST(Dispatcher, RequestsHearOfTheTroublesOfTheirWorker) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin", .probes = {.failure_threshold = 2}});
  const EndpointId id = join(*dispatcher, "a:80");
  const auto endpoint = dispatcher->fleet().view()->find(id)->endpoint;
  std::vector<Trouble> heard;
  const auto hear = [&](Trouble trouble) { heard.push_back(trouble); };
  Choice choice = dispatcher->choose({}, {});
  dispatcher->watch(choice, hear);
  const auto observe = [&](std::initializer_list<bool> busy) {
    for (const bool each : busy) dispatcher->observed(id, *endpoint, each);
  };
  observe({false, false, false, true, false, false, false});
  EXPECT_TRUE(heard.empty()) << "four idle reads in a row are needed";
  observe({false, false});
  EXPECT_EQ(heard, std::vector{Trouble::forgotten}) << "once";
  dispatcher->probed(id, *endpoint, false);
  EXPECT_EQ(heard.size(), 1U);
  dispatcher->probed(id, *endpoint, false);
  EXPECT_EQ(heard.back(), Trouble::unhealthy);
  Choice late{.endpoint = endpoint, .booking = choice.booking, .number = choice.number + 1};
  dispatcher->watch(late, hear);
  EXPECT_EQ(heard.size(), 3U) << "one that begins after the worker has become unhealthy";
  EXPECT_TRUE(dispatcher->remove(id));
  EXPECT_EQ(dispatcher->leaving().size(), 1U) << "it is still asked how it is";
  dispatcher->probed(id, *endpoint, false);
  EXPECT_EQ(heard.size(), 5U);
  dispatcher->ended(choice, Outcome::neither);
  EXPECT_TRUE(dispatcher->leaving().empty());
}

TEST(Dispatcher, ARequestThatHasBegunToBeAnsweredIsNotForgotten) {
  const auto dispatcher = *Dispatcher::make({.policy = "round_robin"});
  const EndpointId id = join(*dispatcher, "a:80");
  const auto endpoint = dispatcher->fleet().view()->find(id)->endpoint;
  int heard = 0;
  Choice choice = dispatcher->choose({}, {});
  dispatcher->watch(choice, [&](Trouble) { ++heard; });
  dispatcher->first_token(choice);
  for (int i = 0; i < 10; ++i) dispatcher->observed(id, *endpoint, false);
  EXPECT_EQ(heard, 0);
  dispatcher->ended(choice, Outcome::success);
}

TEST(Dispatcher, AWorkerThatHasStartedAnewHoldsNothing) {
  const auto dispatcher = *Dispatcher::make({.policy = "cache_aware"});
  join(*dispatcher, "a:80");
  join(*dispatcher, "b:80");
  const RouteRequest request{.text = "a conversation"};
  Choice first = dispatcher->choose(request, {});
  const EndpointId home = first.booking.endpoint;
  dispatcher->ended(first, Outcome::success);
  const auto returns = [&] {
    int times = 0;
    for (int i = 0; i < 64; ++i) {
      Choice again = dispatcher->choose(request, {});
      times += again.booking.endpoint == home;
      dispatcher->ended(again, Outcome::success);
    }
    return times;
  };
  EXPECT_EQ(returns(), 64);
  dispatcher->restarted(home, *dispatcher->fleet().view()->find(home)->endpoint, 0);
  Choice moved = dispatcher->choose(request, {.excluded = {{home}}});
  EXPECT_NE(moved.booking.endpoint, home);
  dispatcher->ended(moved, Outcome::success);
  EXPECT_EQ(returns(), 0) << "only the other one has the prefix";
}

}  // namespace
}  // namespace octavo::fleet
