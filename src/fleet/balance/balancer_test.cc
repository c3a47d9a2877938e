#include "fleet/balance/balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "fleet/decide/policies.h"

#include "fleet/balance/index_metrics.h"

namespace octavo::fleet {
namespace {

struct Setup {
  std::int64_t slow_start_us = 0;
  ProbeOptions probes = {};
  const std::int64_t* now = nullptr;
};
std::unique_ptr<Balancer> make(std::string_view policy, const Setup& setup = {}) {
  BalancerOptions options{
      .pools = {{.policy = std::string(policy), .pipeline = find_policy(policy)->pipeline({})}},
      .probes = setup.probes,
      .slow_start_us = setup.slow_start_us};
  if (setup.now) options.clock = [now = setup.now] { return *now; };
  return *Balancer::make(std::move(options));
}

EndpointId join(Balancer& balancer, const std::string& name) {
  const EndpointId id = balancer.add({.name = name, .url = "http://" + name}).value();
  balancer.probed(id, *balancer.view()->find(id)->endpoint, true);
  return id;
}

int chosen(Balancer& balancer, EndpointId id, int requests) {
  int times = 0;
  for (int i = 0; i < requests; ++i) {
    Choice choice = balancer.choose({}, {}).value();
    times += choice.booking.endpoint == id;
    balancer.ended(choice.booking, Outcome::success);
  }
  return times;
}

TEST(Balancer, MeasuresEndpointsByTheirAnswers) {
  std::int64_t now = 1'000'000;
  const auto balancer = make("kv_aware", {.now = &now});
  for (const char* name : {"a:80", "b:80", "c:80"}) join(*balancer, name);
  // Endpoint 0 is eight times slower than all others.
  const auto answer = [&](EndpointId id, std::uint32_t token) {
    const std::int64_t slower = id == 0 ? 8 : 1;
    const RouteRequest request{.tokens = std::vector<std::uint32_t>(256, token)};
    const std::string worker = balancer->view()->find(id)->endpoint->name;
    Choice choice = balancer->choose(request, {.worker = worker}).value();
    now += 20'000 * slower;
    balancer->first_token(choice.booking);
    for (int i = 0; i < 40; ++i) {
      now += 10'000 * slower;
      balancer->grow(choice.booking, 1);
    }
    balancer->ended(choice.booking, Outcome::success);
  };
  for (std::uint32_t round = 0; round < 4; ++round)
    for (EndpointId id = 0; id < 3; ++id) answer(id, 10 * round + id);
  now += 200'000;
  // Endpoint 0 has cached this prompt, but all others compute it in less time.
  Choice choice = balancer->choose({.tokens = std::vector<std::uint32_t>(256, 0)}, {}).value();
  EXPECT_NE(choice.booking.endpoint, 0U);
  balancer->ended(choice.booking, Outcome::success);
}

// The turns of a session name their endpoint.
TEST(Balancer, TokensThatANamedEndpointHasCachedAreNoNewWork) {
  std::int64_t now = 1'000'000;
  const auto balancer = make("kv_aware", {.now = &now});
  join(*balancer, "a:80");
  join(*balancer, "b:80");
  const RouteRequest request{.tokens = std::vector<std::uint32_t>(256, 7)};
  for (const std::int64_t new_tokens : {256, 0}) {
    Choice choice = balancer->choose(request, {.worker = "b:80"}).value();
    EXPECT_EQ(choice.new_tokens, new_tokens);
    EXPECT_EQ(balancer->load(choice.booking.endpoint).prefill_tokens, new_tokens);
    balancer->ended(choice.booking, Outcome::success);
  }
}

TEST(Balancer, ANewEndpointGetsItsShareGradually) {
  constexpr int kRequests = 400;
  std::int64_t now = 1'000'000;
  const auto balancer = make("round_robin", {.slow_start_us = 100'000'000, .now = &now});
  join(*balancer, "old:80");
  EXPECT_EQ(chosen(*balancer, 0, kRequests), kRequests) << "alone";
  now += 200'000'000;
  const EndpointId fresh = join(*balancer, "new:80");
  EXPECT_EQ(chosen(*balancer, fresh, kRequests), 0);
  now += 10'000'000;
  const int times = chosen(*balancer, fresh, kRequests);
  EXPECT_GT(times, 0);
  EXPECT_LT(times, kRequests / 5) << "half of a share of a tenth, in turn";
  now += 90'000'000;
  EXPECT_EQ(chosen(*balancer, fresh, kRequests), kRequests / 2);
}

TEST(Balancer, OneThatIsAloneIsAskedHoweverNew) {
  const auto balancer = make("round_robin", {.slow_start_us = 86'400'000'000});
  const EndpointId old = join(*balancer, "old:80");
  const EndpointId fresh = join(*balancer, "new:80");
  for (int i = 0; i < 50; ++i) {
    Choice choice = balancer->choose({}, {.excluded = {{old}}}).value();
    EXPECT_EQ(choice.booking.endpoint, fresh);
    balancer->ended(choice.booking, Outcome::success);
  }
}

TEST(Balancer, RequestsOfOtherRoutersCount) {
  for (const char* policy : {"least_loaded", "power_of_two", "kv_aware"}) {
    const auto balancer = make(policy);
    const EndpointId a = join(*balancer, "a:80"), b = join(*balancer, "b:80");
    const Load busy{.requests = 5, .prefill_tokens = 5'000, .context_tokens = 5'000, .own_tokens = 5'000};
    const LoadMessage message{.sender = 7, .all = true, .workers = {{"a:80", busy}, {"unknown:80", busy}}};
    balancer->peer_reported(message);
    EXPECT_EQ(chosen(*balancer, b, 20), 20) << policy;
    EXPECT_EQ(balancer->load_of_peers(a).requests, 5);
    EXPECT_EQ(balancer->load(a).requests, 0) << "its own";
    balancer->peer_reported({.sender = 7, .all = true, .workers = {{"b:80", busy}}});
    EXPECT_EQ(chosen(*balancer, a, 20), 20) << policy;
    const Load busier{.requests = 9, .prefill_tokens = 9'000, .context_tokens = 9'000, .own_tokens = 9'000};
    balancer->peer_reported({.sender = 7, .workers = {{"a:80", busier}}});
    EXPECT_EQ(chosen(*balancer, b, 20), 20) << policy;
    balancer->peer_removed(7);
    EXPECT_EQ(balancer->load_of_peers(a), Load{});
    EXPECT_EQ(balancer->load_of_peers(b), Load{});
  }
}

TEST(Balancer, WhatPeersHadAtAWorkerThatLeftDoesNotCountForTheNextOne) {
  const auto balancer = make("least_loaded");
  const EndpointId removed = join(*balancer, "a:80");
  balancer->peer_reported({.sender = 7, .workers = {{"a:80", {.requests = 5}}}});
  ASSERT_TRUE(balancer->remove(removed));
  const EndpointId fresh = join(*balancer, "b:80");
  EXPECT_EQ(fresh, removed) << "its number is used again";
  EXPECT_EQ(balancer->load_of_peers(fresh), Load{});
}

TEST(Balancer, TellsWhatHasChanged) {
  const auto balancer = make("round_robin");
  int changes = 0;
  balancer->watch_loads([&] { ++changes; });
  join(*balancer, "a:80");
  join(*balancer, "b:80");
  EXPECT_TRUE(balancer->changed_loads(true).empty());
  Choice first = balancer->choose({.tokens = {1, 2, 3}}, {}).value();
  Choice second = balancer->choose({.tokens = {1}}, {}).value();
  EXPECT_EQ(changes, 1) << "once until it was asked";
  EXPECT_EQ(balancer->changed_loads(false).size(), 2u);
  EXPECT_TRUE(balancer->changed_loads(false).empty());
  balancer->first_token(first.booking);
  EXPECT_EQ(changes, 2);
  const std::string name = first.endpoint->name;
  EXPECT_EQ(balancer->changed_loads(false), (std::vector<WorkerLoad>{{name, {1, 0, 3, 3}}}));
  balancer->ended(first.booking, Outcome::success);
  EXPECT_EQ(balancer->changed_loads(false), (std::vector<WorkerLoad>{{name, {}}}));
  EXPECT_EQ(balancer->changed_loads(true), (std::vector<WorkerLoad>{{second.endpoint->name, {1, 1, 1, 1}}}));
  balancer->ended(second.booking, Outcome::success);
}

TEST(Balancer, PrioritiesComeFirst) {
  const auto balancer = make("round_robin");
  std::vector<Endpoint> records{{.name = "b:80", .url = "http://b:80", .priority = 20},
                                {.name = "a:80", .url = "http://a:80", .priority = 10},
                                {.name = "c:80", .url = "http://c:80", .priority = 30}};
  balancer->set_endpoints(records, "SRV");
  for (const EndpointId id : {0U, 1U, 2U}) balancer->probed(id, *balancer->view()->find(id)->endpoint, true);
  const EndpointId second = 0, first = 1, third = 2;
  EXPECT_EQ(chosen(*balancer, first, 20), 20);
  for (const auto& [excluded, next] : {std::pair(std::vector{first}, second), {{first, second}, third}}) {
    Choice choice = balancer->choose({}, {.excluded = excluded}).value();
    EXPECT_EQ(choice.booking.endpoint, next) << "where all that are better have failed";
    balancer->ended(choice.booking, Outcome::success);
  }
  records[2].priority = 5;
  balancer->set_endpoints(records, "SRV");
  EXPECT_EQ(chosen(*balancer, third, 20), 20) << "the records have changed";
}

TEST(Balancer, AListRemovesItsOwnEndpointsOnly) {
  const auto balancer = make("round_robin");
  const EndpointId fixed = join(*balancer, "fixed:80");
  const auto list = [](std::initializer_list<std::string> names) {
    std::vector<Endpoint> endpoints;
    for (const std::string& name : names) endpoints.push_back({.name = name, .url = "http://" + name});
    return endpoints;
  };
  const auto names = [&] {
    std::vector<std::string> found;
    const auto view = balancer->view();
    for (const Member& member : view->members) found.push_back(member.endpoint->name);
    return found;
  };
  balancer->set_endpoints(list({"a:80", "b:80"}), "file");
  balancer->set_endpoints(list({"c:80", "fixed:80"}), "DNS");
  EXPECT_EQ(names(), (std::vector<std::string>{"fixed:80", "a:80", "b:80", "c:80"}));
  const Member a = *balancer->view()->find("a:80");
  balancer->set_models(a, {{"m"}}, {"tuned"});
  balancer->set_ranks(a.id, *a.endpoint, 2);
  balancer->set_endpoints(list({"a:80"}), "file");
  EXPECT_EQ(names(), (std::vector<std::string>{"fixed:80", "a:80", "c:80", "a:80@1"}));
  EXPECT_EQ(balancer->view()->find("a:80")->endpoint->models, std::vector<std::string>{"m"}) << "found out";
  EXPECT_TRUE(balancer->view()->find("a:80")->endpoint->shares_port);
  balancer->set_endpoints({}, "file");
  balancer->set_endpoints({}, "DNS");
  EXPECT_EQ(names(), std::vector<std::string>{"fixed:80"});
  balancer->set_ranks(fixed, *balancer->view()->find(fixed)->endpoint, 3);
  EXPECT_EQ(names().size(), 3U);
  EXPECT_TRUE(balancer->remove(balancer->view()->find("fixed:80@1")->id)) << "all ranks of the port";
  EXPECT_TRUE(names().empty());
}

TEST(Balancer, WhoHasASmallWeightIsPassedOverAsOften) {
  const auto balancer = make("round_robin");
  const auto weighted = [&](const std::string& name, int weight) {
    const EndpointId id = balancer->add({.name = name, .url = "http://" + name, .weight = weight}).value();
    balancer->probed(id, *balancer->view()->find(id)->endpoint, true);
    return id;
  };
  const EndpointId large = weighted("a:80", 100), small = weighted("b:80", 20), none = weighted("c:80", 0);
  const int times = chosen(*balancer, small, 2000);
  // The share of `small` is 1/5 of that of `large`, so it gets 1/6 of the requests (about 333).
  EXPECT_GT(times, 200);
  EXPECT_LT(times, 450);
  EXPECT_EQ(chosen(*balancer, none, 200), 0) << "while others are there";
  Choice choice = balancer->choose({}, {.excluded = {{large, small}}}).value();
  EXPECT_EQ(choice.booking.endpoint, none);
  balancer->ended(choice.booking, Outcome::success);
}

TEST(Balancer, RequestsHearOfTheTroublesOfTheirWorker) {
  const auto balancer = make("round_robin", {.probes = {.failure_threshold = 2}});
  const EndpointId id = join(*balancer, "a:80");
  const auto endpoint = balancer->view()->find(id)->endpoint;
  std::vector<Trouble> troubles;
  const auto note = [&](Trouble trouble) { troubles.push_back(trouble); };
  Choice choice = balancer->choose({}, {}).value();
  balancer->watch(choice.booking, note);
  const auto observe = [&](std::initializer_list<bool> busy) {
    for (const bool each : busy)
      balancer->scraped({{.endpoint = id, .name = "a:80", .state = EndpointState{.running = each ? 1 : 0}}});
  };
  observe({false, false, false, true, false, false, false});
  EXPECT_TRUE(troubles.empty()) << "four idle reads in a row are needed";
  observe({false, false});
  EXPECT_EQ(troubles, std::vector{Trouble::forgotten}) << "once";
  balancer->probed(id, *endpoint, false);
  EXPECT_EQ(troubles.size(), 1U);
  balancer->probed(id, *endpoint, false);
  EXPECT_EQ(troubles.back(), Trouble::unhealthy);
  Booking late = choice.booking;
  ++late.number;
  balancer->watch(late, note);
  EXPECT_EQ(troubles.size(), 3U) << "one that begins after the worker has become unhealthy";
  EXPECT_TRUE(balancer->remove(id));
  EXPECT_EQ(balancer->leaving().size(), 1U) << "it is still asked how it is";
  balancer->probed(id, *endpoint, false);
  EXPECT_EQ(troubles.size(), 5U);
  balancer->ended(choice.booking, Outcome::neither);
  EXPECT_TRUE(balancer->leaving().empty());
}

TEST(Balancer, ARequestHearsThatItsWorkersProcessIsGone) {
  const auto balancer = make("round_robin");
  const EndpointId id = join(*balancer, "a:80");
  std::vector<Trouble> troubles;
  Choice choice = balancer->choose({}, {}).value();
  balancer->watch(choice.booking, [&](Trouble trouble) { troubles.push_back(trouble); });
  const auto read = [&](double started_s, std::string name) {
    EndpointState state{.observed_us = now_us() + 1, .running = 1, .started_s = started_s};
    return balancer->scraped({{.endpoint = id, .name = std::move(name), .state = state}});
  };
  EXPECT_TRUE(read(100, "a:80").empty());
  EXPECT_TRUE(read(200, "b:80").empty()) << "of an endpoint that had this id before";
  EXPECT_TRUE(troubles.empty());
  EXPECT_EQ(read(200, "a:80"), std::vector{id});
  EXPECT_EQ(troubles, std::vector{Trouble::restarted});
  balancer->ended(choice.booking, Outcome::neither);
}

TEST(Balancer, ARequestThatHasBegunToBeAnsweredIsNotForgotten) {
  const auto balancer = make("round_robin");
  const EndpointId id = join(*balancer, "a:80");
  int troubles = 0;
  Choice choice = balancer->choose({}, {}).value();
  balancer->watch(choice.booking, [&](Trouble) { ++troubles; });
  balancer->first_token(choice.booking);
  for (int i = 0; i < 10; ++i) balancer->scraped({{.endpoint = id, .state = EndpointState{}}});
  EXPECT_EQ(troubles, 0);
  balancer->ended(choice.booking, Outcome::success);
}

// The endpoint reports no load, so its metrics cannot show that the request is lost.
TEST(Balancer, ASilentRequestOfABlindEndpointIsNoticedByTheClock) {
  constexpr std::int64_t kSecondUs = 1'000'000;
  std::int64_t now = kSecondUs;
  const auto balancer = make("round_robin", {.now = &now});
  const EndpointId id = join(*balancer, "a:80");
  std::vector<Trouble> troubles;
  Choice choice = balancer->choose({}, {}).value();
  balancer->watch(choice.booking, [&](Trouble trouble) { troubles.push_back(trouble); }, 10 * kSecondUs);
  const auto wait = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += kSecondUs;
      balancer->tick();
    }
    return std::exchange(troubles, {});
  };
  EXPECT_TRUE(wait(9).empty());
  EXPECT_EQ(wait(1), std::vector{Trouble::forgotten});
  balancer->first_token(choice.booking);
  EXPECT_TRUE(wait(29).empty()) << "three times as long in a stream";
  balancer->grow(choice.booking, 1);
  EXPECT_TRUE(wait(29).empty()) << "since its last bytes";
  EXPECT_EQ(wait(1), std::vector{Trouble::stalled});
  balancer->scraped({{.endpoint = id, .state = EndpointState{.observed_us = now, .running = 1}}});
  EXPECT_TRUE(wait(40).empty()) << "its reports tell";
  EXPECT_EQ(wait(30), std::vector{Trouble::stalled}) << "they have ended";
  balancer->ended(choice.booking, Outcome::neither);
  EXPECT_TRUE(wait(60).empty());
}

TEST(Balancer, AWorkerThatIsAddedAgainIsDescribedAnew) {
  const auto balancer = make("round_robin");
  const EndpointId id = balancer->put({.name = "a:80", .url = "http://a:80"}).value();
  EXPECT_EQ(balancer->put({.name = "a:80", .url = "http://a:80", .models = {"m"}, .block_size = 32}).value(),
            id);
  EXPECT_EQ(balancer->view()->find(id)->endpoint->models, std::vector<std::string>{"m"});
  balancer->set_endpoints({{.name = "b:80", .url = "http://b:80", .models = {"listed"}}}, "list");
  const EndpointId listed = balancer->put({.name = "b:80", .url = "http://b:80", .models = {"m"}}).value();
  EXPECT_EQ(balancer->view()->find(listed)->endpoint->models, std::vector<std::string>{"listed"});
  EXPECT_FALSE(balancer->add({.name = "a:80", .url = "http://a:80"})) << "twice on the command line";
}

TEST(Balancer, ARegistrationKeepsTheLabelsThatItDoesNotName) {
  const auto balancer = make("round_robin");
  const auto put = [&](std::map<std::string, std::string> labels) {
    const EndpointId id =
        balancer->put({.name = "a:80", .url = "http://a:80", .labels = std::move(labels)}).value();
    return balancer->view()->find(id)->endpoint->labels;
  };
  put({{"zone", "a"}, {"rack", "1"}});
  EXPECT_EQ(put({{"rack", "2"}}), (std::map<std::string, std::string>{{"zone", "a"}, {"rack", "2"}}));
}

TEST(Balancer, RegisteredRanksAreEndpoints) {
  const auto balancer = make("round_robin");
  balancer->set_endpoints({{.name = "a:80",
                            .url = "http://a:80",
                            .kv_events_endpoint = "tcp://a:5557",
                            .ranks = 2,
                            .block_size = 32}});
  const auto view = balancer->view();
  ASSERT_EQ(view->members.size(), 2U);
  EXPECT_EQ(view->find("a:80")->state.block_size, 32);
  EXPECT_TRUE(view->find("a:80")->endpoint->shares_port);
  EXPECT_EQ(view->find("a:80@1")->endpoint->kv_events_endpoint, "tcp://a:5558");
  balancer->set_endpoints({});
  EXPECT_TRUE(balancer->view()->members.empty());
}

TEST(Balancer, AnEndpointThatNoProbeHasReachedIsBetterThanNone) {
  const auto balancer = make("round_robin");
  const EndpointId old = join(*balancer, "old:80");
  const EndpointId fresh = balancer->add({.name = "new:80", .url = "http://new:80"}).value();
  EXPECT_EQ(chosen(*balancer, fresh, 20), 0);
  balancer->remove(old);
  EXPECT_EQ(chosen(*balancer, fresh, 20), 20);
  balancer->probed(fresh, *balancer->view()->find(fresh)->endpoint, false);
  EXPECT_FALSE(balancer->choose({}, {})) << "it does not answer";
}

TEST(Balancer, AWorkerThatHasStartedAnewHoldsNothing) {
  const auto balancer = make("cache_aware");
  join(*balancer, "a:80");
  join(*balancer, "b:80");
  const RouteRequest request{.text = "a conversation"};
  Choice first = balancer->choose(request, {}).value();
  const EndpointId home = first.booking.endpoint;
  balancer->ended(first.booking, Outcome::success);
  const auto returns = [&] {
    int times = 0;
    for (int i = 0; i < 64; ++i) {
      Choice again = balancer->choose(request, {}).value();
      times += again.booking.endpoint == home;
      balancer->ended(again.booking, Outcome::success);
    }
    return times;
  };
  EXPECT_EQ(returns(), 64);
  EXPECT_TRUE(balancer->scraped({{.endpoint = home, .state = EndpointState{.started_s = 100}}}).empty());
  EXPECT_EQ(balancer->scraped({{.endpoint = home, .state = EndpointState{.started_s = 200}}}),
            std::vector{home});
  Choice moved = balancer->choose(request, {.excluded = {{home}}}).value();
  EXPECT_NE(moved.booking.endpoint, home);
  balancer->ended(moved.booking, Outcome::success);
  EXPECT_EQ(returns(), 0) << "only the other one has the prefix";
}

TEST(Balancer, MetricsSayWhetherEventsOrEstimatesFillTheIndex) {
  const auto balancer = make("kv_aware");
  const EndpointId id = join(*balancer, "a:80");
  join(*balancer, "b:80");
  const auto page = [&] {
    std::string out;
    write_index_metrics(out, *balancer);
    return out;
  };
  EXPECT_THAT(page(), testing::HasSubstr(",source=\"events\"} 0\n"));
  EXPECT_THAT(page(), testing::HasSubstr(",source=\"estimates\"} 2\n"));
  const auto view = balancer->view();
  const CacheEvent stored{.kind = CacheEvent::Kind::stored, .blocks = {1}, .tokens = {1, 2}, .block_size = 2};
  EXPECT_TRUE(balancer->cache_changed(*view->find(id), {&stored, 1}, {}));
  EXPECT_THAT(page(), testing::HasSubstr(",source=\"events\"} 1\n"));
  EXPECT_THAT(page(), testing::HasSubstr(",source=\"estimates\"} 1\n"));
}

}  // namespace
}  // namespace octavo::fleet
