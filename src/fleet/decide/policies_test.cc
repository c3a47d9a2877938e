#include "fleet/decide/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Pipeline policy(std::string_view name, PolicyOptions options = {}) {
  auto made = Pipeline::make(find_policy(name)->pipeline(options));
  CHECK(made, "{}", made.error().message);
  return *std::move(made);
}

TEST(Policies, AllAreMadeAndRankEveryEndpointAvailable) {
  for (const Policy& p : policies()) {
    if (p.name == "power_of_two") continue;  // the policy ranks only the two endpoints that it draws
    TestFleet fleet(4);
    fleet.fleet.update(1, [](EndpointState& s) { s.availability = Availability::broken; });
    auto made = policy(p.name);
    EXPECT_THAT(fleet.rank(made, prompt("hello")), UnorderedElementsAre(0, 2, 3)) << p.name;
    EXPECT_THAT(fleet.rank(made, prompt("hello"), {0, 3}), ElementsAre(2)) << p.name;
    EXPECT_THAT(fleet.rank(made, prompt("hello"), {0, 2, 3}), IsEmpty()) << p.name;
  }
  EXPECT_EQ(find_policy("nobody's"), nullptr);
}

TEST(Policies, OnlyWhoServesTheModelIsAsked) {
  TestFleet fleet(3);
  fleet.fleet.describe(0, {.name = "a", .models = {"x"}});
  fleet.fleet.describe(1, {.name = "b", .models = {"m"}});
  fleet.fleet.describe(2, {.name = "c", .models = {"x"}, .adapters = {"m"}});
  auto random = policy("random");
  EXPECT_THAT(fleet.rank(random, prompt("p")), UnorderedElementsAre(1, 2));
}

TEST(Policies, RoundRobinTakesTurnsAlsoWhenSomeAreAway) {
  TestFleet fleet(3);
  auto turns = policy("round_robin");
  std::vector<EndpointId> first;
  for (int i = 0; i < 4; ++i) first.push_back(fleet.rank(turns, prompt("p"))[0]);
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(fleet.rank(turns, prompt("p"), {1}), ElementsAre(2, 0));
  EXPECT_EQ(fleet.rank(turns, prompt("p"))[0], 0U);
}

TEST(Policies, LeastLoadedGoesWhereTheFewestRequestsAre) {
  TestFleet fleet(3);
  auto least = policy("least_loaded");
  std::map<EndpointId, int> counts;
  for (int i = 0; i < 30; ++i) ++counts[fleet.send(least, prompt("p")).endpoint];
  EXPECT_EQ(counts[0], 10);
  EXPECT_EQ(counts[1], 10);
  EXPECT_EQ(counts[2], 10);
}

TEST(Policies, PowerOfTwoTakesTheLessLoadedOfTwo) {
  TestFleet fleet(3);
  fleet.inflight.book(0, 1, 1);
  fleet.inflight.book(0, 1, 1);
  fleet.inflight.book(1, 1, 1);
  auto two = policy("power_of_two");
  std::map<EndpointId, int> first;
  for (int i = 0; i < 3000; ++i) {
    const auto ranked = fleet.rank(two, prompt("p"));
    ASSERT_EQ(ranked.size(), 2U);
    ++first[ranked[0]];
  }
  EXPECT_EQ(first[0], 0) << "whoever comes with it has less";
  EXPECT_NEAR(first[1], 1000, 120);
  EXPECT_NEAR(first[2], 2000, 120);
}

RouteRequest with_header(std::string name, std::string value) {
  RouteRequest request = prompt("p");
  request.headers.emplace_back(std::move(name), std::move(value));
  return request;
}

RouteRequest with_key(std::string key) {
  RouteRequest request = prompt("p");
  request.routing_key = std::move(key);
  return request;
}

TEST(Policies, ConsistentHashingKeepsAKeyWhereItIs) {
  TestFleet fleet(5);
  auto hashing = policy("consistent_hashing");
  std::map<EndpointId, int> counts;
  for (int i = 0; i < 1000; ++i) {
    const RouteRequest request = with_key(std::to_string(i));
    const auto order = fleet.rank(hashing, request);
    ++counts[order[0]];
    EXPECT_EQ(fleet.rank(hashing, request), order);
    EXPECT_EQ(fleet.rank(hashing, request, {order[1]})[0], order[0])
        << "who goes takes only its own keys along";
    EXPECT_EQ(fleet.rank(hashing, request, {order[0]})[0], order[1]);
  }
  for (const auto& [endpoint, keys] : counts) EXPECT_NEAR(keys, 200, 60) << endpoint;
  RouteRequest request = with_header("x-smg-target-worker", "3");
  EXPECT_EQ(fleet.rank(hashing, request)[0], 3U);
  request.headers.emplace_back("cookie", "c");
  request.headers.emplace_back("authorization", "a");
  EXPECT_EQ(fleet.rank(hashing, request)[0], 3U);
  EXPECT_TRUE(fleet.rank(hashing, request, {3}).empty()) << "no other worker may get the request";
  for (const char* target : {"4000", "-1", "3x", "nobody", "http://nobody:1"})
    EXPECT_TRUE(fleet.rank(hashing, with_header("x-smg-target-worker", target)).empty()) << target;
  const Endpoint& second = *fleet.fleet.view()->find(EndpointId{2})->endpoint;
  for (const std::string& target : {second.url, second.name})
    EXPECT_EQ(fleet.rank(hashing, with_header("x-smg-target-worker", target)), std::vector<EndpointId>{2});
  EXPECT_EQ(fleet.rank(hashing, with_header("x-smg-target-worker", "")).size(), 5U);
}

TEST(Policies, ConsistentHashingSpreadsTheConversationsOfOneApiKey) {
  TestFleet fleet(4);
  auto hashing = policy("consistent_hash");
  std::set<EndpointId> homes;
  for (int i = 0; i < 40; ++i) {
    RouteRequest request = with_header("authorization", "Bearer one");
    request.routing_key = "conversation " + std::to_string(i);
    homes.insert(fleet.rank(hashing, request)[0]);
  }
  EXPECT_EQ(homes.size(), 4U);
  const RouteRequest same = with_header("authorization", "Bearer one");
  EXPECT_EQ(fleet.rank(hashing, same), fleet.rank(hashing, same)) << "without a routing key";
}

TEST(Policies, PrefixHashLooksAtThePrefixUntilLoadIsUneven) {
  TestFleet fleet(4);
  auto hashing = policy("prefix_hash", {.prefix_token_count = 2});
  const EndpointId home = fleet.rank(hashing, prompt("abcdefgh"))[0];
  EXPECT_EQ(fleet.rank(hashing, prompt("abcdefgh, and so on"))[0], home);
  std::set<EndpointId> homes;
  for (int i = 0; i < 40; ++i) homes.insert(fleet.rank(hashing, prompt(std::to_string(10'000'000 + i)))[0]);
  EXPECT_EQ(homes.size(), 4U);
  std::map<EndpointId, int> counts;
  for (int i = 0; i < 100; ++i) ++counts[fleet.send(hashing, prompt("abcdefgh")).endpoint];
  for (const auto& [endpoint, requests] : counts) EXPECT_LE(requests, 32) << "1.25 x 101 / 4";
  EXPECT_EQ(counts.size(), 4U);
}

TEST(Policies, ManualStaysWithTheFirstChoice) {
  TestFleet fleet(3);
  auto manual = policy("manual", {.max_idle_secs = 10});
  const RouteRequest request = with_key("k");
  const EndpointId home = fleet.send(manual, request).endpoint;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(fleet.rank(manual, request)[0], home);
  const EndpointId second = fleet.send(manual, request, {home}).endpoint;
  EXPECT_EQ(fleet.rank(manual, request)[0], second) << "it stays where it went";
  manual.expire(10'000'000);
  EXPECT_EQ(fleet.rank(manual, request)[0], second);
  manual.expire(10'000'001);
  std::set<EndpointId> homes;
  for (int i = 0; i < 50; ++i) homes.insert(fleet.rank(manual, request)[0]);
  EXPECT_EQ(homes.size(), 3U) << "forgotten";
  fleet.send(manual, request);
  for (const EndpointId id : {0U, 1U, 2U}) manual.forget(id);
  homes.clear();
  for (int i = 0; i < 50; ++i) homes.insert(fleet.rank(manual, request)[0]);
  EXPECT_EQ(homes.size(), 3U);
}

TEST(Policies, StickyLeastLoadedGivesEachReplicaTheSameNumberOfConversations) {
  TestFleet fleet(3);
  auto sticky = policy("sticky_least_loaded", {.assignment_mode = "random"});
  std::map<EndpointId, int> conversations;
  for (int i = 0; i < 30; ++i) {
    const RouteRequest request = with_key("conversation " + std::to_string(i));
    const EndpointId home = fleet.send(sticky, request).endpoint;
    ++conversations[home];
    EXPECT_EQ(fleet.send(sticky, request).endpoint, home);
  }
  for (const EndpointId id : {0U, 1U, 2U}) EXPECT_EQ(conversations[id], 10) << id;
}

TEST(Policies, AFinishedConversationNoLongerCountsAtItsReplica) {
  TestFleet fleet(2);
  auto sticky = policy("sticky_least_loaded");
  const RouteRequest first = with_key("first"), second = with_key("second");
  const EndpointId home = fleet.send(sticky, first).endpoint;
  EXPECT_NE(fleet.send(sticky, second).endpoint, home);
  sticky.finished("first");
  sticky.finished("first");
  sticky.finished("unknown");
  EXPECT_EQ(fleet.send(sticky, with_key("third")).endpoint, home);
}

TEST(Policies, BucketPartsByLengthAndBalancesWork) {
  TestFleet fleet(2);
  auto bucket = policy("bucket");
  for (int i = 0; i < 8; ++i) fleet.send(bucket, prompt(std::string(40, 'a')));   // 80 tokens of work
  for (int i = 0; i < 2; ++i) fleet.send(bucket, prompt(std::string(400, 'a')));  // 200 tokens of work
  bucket.expire(6'000'000);
  EXPECT_EQ(fleet.rank(bucket, prompt(std::string(40, 'a')))[0], 0U);
  EXPECT_EQ(fleet.rank(bucket, prompt(std::string(400, 'a')))[0], 1U);
  fleet.send(bucket, prompt(std::string(400, 'a')));
  EXPECT_EQ(fleet.rank(bucket, prompt(std::string(400, 'a')))[0], 0U) << "100 tokens of work against none";
}

TEST(Policies, CacheAwareReturnsToWhereThePrefixWent) {
  TestFleet fleet(4);
  auto aware = policy("cache_aware");
  std::map<std::string, EndpointId> home;
  for (const std::string who : {"ada", "bob", "cid", "dan"}) {
    Booking booking = fleet.send(aware, prompt(who + ", this is your conversation: hello"));
    home[who] = booking.endpoint;
  }
  EXPECT_EQ(std::set<EndpointId>({home["ada"], home["bob"], home["cid"], home["dan"]}).size(), 4U)
      << "new prompts go to the least loaded";
  for (const auto& [who, endpoint] : home)
    EXPECT_EQ(fleet.rank(aware, prompt(who + ", this is your conversation: hello, and more"))[0], endpoint);
}

TEST(Policies, CacheAwareTakesAShortMatchForNone) {
  TestFleet fleet(2);
  auto aware = policy("cache_aware", {.cache_threshold = 0.5});
  Booking booking = fleet.send(aware, prompt("abcde"));
  const EndpointId first = booking.endpoint;
  EXPECT_EQ(fleet.rank(aware, prompt("abcde12345"))[0], 1 - first) << "half of it is not more than half";
  fleet.inflight.free(booking);
  EXPECT_EQ(fleet.rank(aware, prompt("abcde1234"))[0], first);
}

TEST(Policies, CacheAwareGivesWayToLoadWhenItIsUneven) {
  TestFleet fleet(2);
  auto aware = policy("cache_aware", {.balance_abs_threshold = 3, .balance_rel_threshold = 1.5});
  const EndpointId home = fleet.send(aware, prompt("abcdefgh")).endpoint;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fleet.send(aware, prompt("abcdefgh")).endpoint, home);
  EXPECT_EQ(fleet.send(aware, prompt("abcdefgh")).endpoint, 1 - home) << "4 against 0";
}

TEST(Policies, CacheAwareLeavesABusyReplicaForAShorterPrefix) {
  TestFleet fleet(2);
  auto aware = policy("cache_aware", {.balance_abs_threshold = 1000});
  const std::string shared(200, 's');
  Booking first = fleet.send(aware, prompt(shared + "one"));
  const EndpointId home = first.endpoint;
  fleet.inflight.free(first);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(fleet.send(aware, prompt(shared + "one")).endpoint, home) << "nothing is missing";
  EXPECT_EQ(fleet.rank(aware, prompt(shared + std::string(100, 'x')))[0], 1 - home)
      << "100 missing bytes delay four requests";
}

TEST(Policies, CacheAwareKeepsModelsAndSaltsApart) {
  TestFleet fleet(2);
  auto aware = policy("cache_aware");
  RouteRequest salted = prompt("abcdefgh");
  const EndpointId home = fleet.send(aware, salted).endpoint;
  salted.cache_salt = "s";
  EXPECT_EQ(fleet.rank(aware, salted)[0], 1 - home);
}

RouteRequest exact_prompt(std::uint32_t seed, std::size_t tokens) {
  RouteRequest request{.model = "m"};
  request.tokens.assign(tokens, seed);
  request.tokens_are_exact = true;
  return request;
}
CacheEvent held(std::uint32_t seed, std::uint64_t blocks) {
  CacheEvent event{.kind = CacheEvent::Kind::stored, .block_size = 16};
  for (std::uint64_t i = 0; i < blocks; ++i) event.blocks.push_back(1000 * seed + i);
  event.tokens.assign(blocks * 16, seed);
  return event;
}
void report(Pipeline& policy, EndpointId endpoint, CacheEvent event) {
  policy.cache_changed(endpoint, {&event, 1});
}

TEST(Policies, KvAwareGoesWhereThePrefixIsByWhatEnginesTell) {
  TestFleet fleet(4);
  auto aware = policy("kv_aware");
  report(aware, 2, held(7, 4));
  report(aware, 1, held(7, 2));
  report(aware, 3, held(8, 4));
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 100))[0], 2U);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 100), {2})[0], 1U);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(8, 100))[0], 3U);
  report(aware, 2, {.kind = CacheEvent::Kind::removed, .blocks = {7001, 7002, 7003}});
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 100))[0], 1U);
  report(aware, 1, {.kind = CacheEvent::Kind::cleared});
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 100))[0], 2U);
}

TEST(Policies, KvAwareBelievesWhatEnginesTellMoreThanWhatTheyWereSent) {
  TestFleet fleet(2);
  auto aware = policy("kv_aware");
  const EndpointId home = fleet.send(aware, exact_prompt(7, 160)).endpoint;
  fleet.inflight = {};
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 160))[0], home) << "it was sent there";
  report(aware, home, held(9, 1));
  report(aware, 1 - home, held(7, 2));
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 160))[0], 1 - home) << "it tells what it holds, and not that";
}

TEST(Policies, KvAwareMayExpectWhatIsBeingComputed) {
  TestFleet fleet(3);
  PipelineConfig config = find_policy("kv_aware")->pipeline({});
  config.plugins.back().parameters["speculativeIndexing"] = true;
  Pipeline aware = *Pipeline::make(std::move(config));
  for (EndpointId each = 0; each < 3; ++each) report(aware, each, held(9, 1));
  const EndpointId home = fleet.send(aware, exact_prompt(7, 160)).endpoint;
  fleet.inflight = {};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 160))[0], home);
  fleet.now_us = 2'000'000;
  aware.expire(fleet.now_us);
  report(aware, (home + 1) % 3, held(7, 1));
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 160))[0], (home + 1) % 3) << "it has not told of it";
}

TEST(Policies, KvAwareCountsWhomAComputationDelays) {
  // Endpoint 0 has cached the prompt, and has a longer queue. At endpoint 1, computing the prompt would
  // delay three requests.
  const auto first = [](double weight) {
    TestFleet fleet(2);
    auto aware = policy("kv_aware", {.kv_delay_weight = weight});
    report(aware, 0, held(7, 4));
    fleet.inflight.book(0, 512, 512);
    for (int i = 0; i < 3; ++i) fleet.inflight.book(1, 64, 64);
    return fleet.rank(aware, exact_prompt(7, 64))[0];
  };
  EXPECT_EQ(first(0), 1U) << "64 blocks against 32, as Dynamo has it";
  EXPECT_EQ(first(4), 0U) << "and 4 x 3 x 4 more";
}

TEST(Policies, KvAwareLeavesASlowEndpointIfComputingElsewhereIsFaster) {
  TestFleet fleet(2);
  auto aware = policy("kv_aware");
  report(aware, 0, held(7, 40));
  const auto answer = [&](EndpointId endpoint, std::int64_t token_us) {
    Progress progress{.prompt_tokens = 160};
    std::int64_t now_us = token_us;
    for (int i = 0; i < 4; ++i) {
      progress.prompt_tokens = 160;
      fleet.pace.first_token(endpoint, progress, now_us);
      for (int token = 0; token < 8; ++token) fleet.pace.grow(endpoint, progress, 1, now_us += token_us);
    }
    fleet.pace.ended(progress);
  };
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 640))[0], 0U);
  answer(0, 8000);
  answer(1, 1000);
  fleet.pace.compare(1'000'000);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 640))[0], 1U);
}

TEST(Policies, KvAwareForgetsWhatWasSentWhereNothingIsTold) {
  TestFleet fleet(2);
  auto aware = policy("kv_aware", {.router_ttl_secs = 10});
  const RouteRequest request = prompt(std::string(1000, 'x'));
  const EndpointId home = fleet.send(aware, request).endpoint;
  fleet.inflight = {};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fleet.rank(aware, request)[0], home);
  fleet.now_us = 11'000'000;
  aware.expire(fleet.now_us);
  int elsewhere = 0;
  for (int i = 0; i < 50; ++i) elsewhere += fleet.rank(aware, request)[0] != home;
  EXPECT_GT(elsewhere, 0);
}

TEST(Policies, KvAwareGivesWayToLoad) {
  TestFleet fleet(2);
  auto aware = policy("kv_aware");
  report(aware, 0, held(7, 4));
  // At endpoint 0, the cost is 7 blocks of load. At endpoint 1, it is 8 blocks: 4 to compute and 4 to store.
  Booking others = fleet.inflight.book(0, 112, 112);
  fleet.inflight.first_token(others);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 64))[0], 0U);
  fleet.inflight.grow(others, 32);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 64))[0], 1U);
}

TEST(Policies, KvAwareCountsWhatRequestsShareOnce) {
  TestFleet fleet(2);
  auto aware = policy("kv_aware");
  report(aware, 0, held(7, 40));
  // Endpoint 0 has many long contexts, which were all cached. Endpoint 1 had to compute a few blocks.
  for (int i = 0; i < 10; ++i) fleet.inflight.book(0, 640, 0);
  Booking other = fleet.inflight.book(1, 64, 64);
  fleet.inflight.first_token(other);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 640))[0], 0U);
}

TEST(Policies, KvAwareKeepsSaltedPromptsApartAndAtHome) {
  TestFleet fleet(3);
  auto aware = policy("kv_aware");
  report(aware, 2, held(7, 4));
  RouteRequest salted = exact_prompt(7, 64);
  salted.cache_salt = "s";
  const EndpointId home = fleet.send(aware, salted, {2}).endpoint;
  fleet.inflight = {};
  EXPECT_EQ(fleet.rank(aware, salted)[0], home);
  EXPECT_EQ(fleet.rank(aware, exact_prompt(7, 64))[0], 2U);
}

TEST(Policies, KvAwareKeepsConversationsAboutImagesAtHome) {
  TestFleet fleet(3);
  auto aware = policy("kv_aware");
  for (const EndpointId id : {0U, 1U, 2U}) report(aware, id, held(7, 1));
  for (std::uint32_t seed = 10; seed < 20; ++seed) {
    RouteRequest about_image = exact_prompt(seed, 64);
    about_image.media = {1};
    const EndpointId home = fleet.send(aware, about_image).endpoint;
    CacheEvent stored = held(seed, 4);
    stored.salt = "hash of the image";
    report(aware, home, stored);
    fleet.inflight = {};
    EXPECT_EQ(fleet.rank(aware, about_image)[0], home);
  }
}

TEST(Policies, TheSameSeedMakesTheSameDecision) {
  for (const Policy& p : policies()) {
    TestFleet a(5), b(5);
    auto first = policy(p.name), second = policy(p.name);
    for (int i = 0; i < 50; ++i) {
      const RouteRequest request = prompt(std::string(static_cast<std::size_t>(i % 7), 'x'));
      ASSERT_EQ(a.send(first, request).endpoint, b.send(second, request).endpoint) << p.name;
    }
  }
}

}  // namespace
}  // namespace octavo::fleet
