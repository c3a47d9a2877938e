#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/pick/test_processor.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

std::unique_ptr<Balancer> picker_of(PipelineConfig pipeline) {
  return *Balancer::make({.pools = {{.pipeline = std::move(pipeline)}}, .probes = {.success_threshold = 1}});
}

TEST_F(ProcessorTest, WhoHoldsMoreOfAPromptIsNamedToWhoComputesIt) {
  constexpr std::string_view kSource = "x-kv-cache-source-host-port";
  begin(2, {}, {{{"", "p2p-source-producer"}, {"", "active-request-scorer"}}, {{"active-request-scorer"}}});
  const std::string body = R"({"model":"m","prompt":")" + std::string(2000, 'x') + R"("})";
  CHECK(send(request_headers({{std::string(kSource), "10.9.9.9:1"}})));
  CHECK(send(request_body(body)));
  const std::string first = choice_headers().at("x-gateway-destination-endpoint");
  EXPECT_FALSE(choice_headers().contains(std::string(kSource)));
  const auto& removed = answers_.at(0).request_headers().response().header_mutation().remove_headers();
  EXPECT_THAT(removed, testing::Contains(std::string(kSource))) << "it is not the client's to say";
  const auto busy = std::move(processor_);
  next();
  CHECK(send(request_headers()));
  CHECK(send(request_body(body)));
  EXPECT_NE(choice_headers().at("x-gateway-destination-endpoint"), first) << "that one is busy";
  EXPECT_EQ(choice_headers().at(std::string(kSource)), first);
}

TEST_F(ProcessorTest, HowBusyGpusAreIsKnownBesideEnginesOwnMetrics) {
  begin(2);
  const AttributeKey busy{"GPUUtilization", "dcgm-extractor"}, depth{"depth", "core-metrics-extractor"};
  const EndpointId id = balancer_->view()->members.at(0).id;
  EndpointState read;
  read.waiting = 3;
  read.attributes = std::make_shared<const Attributes>(Attributes{{depth, 7}});
  balancer_->scraped(
      {{.endpoint = id, .answered = true, .state = read}, {.endpoint = id, .attributes = {{busy, 0.5}}}});
  read.attributes.reset();
  read.waiting = 4;
  balancer_->scraped({{.endpoint = id, .answered = true, .state = read}});
  const auto view = balancer_->view();
  const EndpointState& state = view->members.at(0).state;
  EXPECT_EQ(state.waiting, 4);
  EXPECT_EQ(state.attribute(busy), 0.5);
  EXPECT_EQ(state.attribute(depth), 7);
  EXPECT_EQ(state.availability, Availability::available);
}

TEST_F(ProcessorTest, LatenciesAreLearntFromAnswers) {
  begin(2, {},
        {{{"", "slo-headroom-tier-filter", {{"epsilonExploreNeg", 0}}}, {"", "random-picker"}},
         {{"slo-headroom-tier-filter"}, {"random-picker"}}});
  const auto ask = [&](std::vector<std::string> subset) {
    next();
    CHECK(send(request_headers({{"x-slo-ttft-ms", "1000000"}})));
    CHECK(send(subset.empty() ? request_body(kBody) : with_subset(request_body(kBody), subset)));
    return choice_headers().at("x-gateway-destination-endpoint");
  };
  for (int i = 0; i < 18; ++i) {
    EXPECT_EQ(ask({"10.0.0.2"}), "10.0.0.2:8000");
    ProcessingRequest headers;
    auto& status = *headers.mutable_response_headers()->mutable_headers()->add_headers();
    status.set_key(":status");
    status.set_raw_value("200");
    CHECK(send(headers));
    CHECK(send(response_body("{}", true)));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask({}), "10.0.0.2:8000");
}

TEST(PickPolicy, AnAdmitterRefuses) {
  const auto picker = picker_of(
      {.plugins = {{"", "random-picker"}, {"", "probabilistic-admitter"}}, .steps = {{"random-picker"}}});
  picker->set_endpoints({{.name = "10.0.0.1:8000", .url = "http://10.0.0.1:8000"}});
  picker->scraped({{.endpoint = 0, .answered = true}});
  EXPECT_TRUE(picker->choose({}, {}));
  const auto refused = picker->choose({}, {.priority = -1});
  ASSERT_FALSE(refused) << "nothing is known of its load";
  EXPECT_EQ(refused.error().status, 500);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("request cannot be admitted: inference error: ResourceExhausted - probabilistic-admitter"));
}

TEST(PickPolicy, AnEndpointThatStartsAnewBetweenTwoReadingsHoldsNothing) {
  const auto picker =
      picker_of({.plugins = {{"", "approx-prefix-cache-producer"}, {"", "prefix-cache-scorer"}},
                 .steps = {{"prefix-cache-scorer"}}});
  picker->set_endpoints({{.name = "10.0.0.1:8000"}, {.name = "10.0.0.2:8000"}});
  const auto read = [&](EndpointId id, double prompt_tokens) {
    picker->scraped(
        {{.endpoint = id, .answered = true, .state = EndpointState{.prompt_tokens = prompt_tokens}}});
  };
  for (const EndpointId id : {0U, 1U}) read(id, 100);
  const RouteRequest request{.tokens = std::vector<std::uint32_t>(256, 7)};
  EndpointId chosen = kNoEndpoint;
  const auto score = [&] {
    auto choice = picker->choose(request, {});
    chosen = choice->booking.endpoint;
    picker->ended(choice->booking, Outcome::neither);
    return choice->picked[0].score;
  };
  EXPECT_EQ(score(), 0);
  const EndpointId holder = chosen;
  EXPECT_GT(score(), 0);
  EXPECT_EQ(chosen, holder);
  read(holder, 110);
  EXPECT_GT(score(), 0);
  read(holder, 3);
  EXPECT_EQ(score(), 0) << "its counters have begun anew";
}

TEST(PickPolicy, TheBlocksOfAnAdapterBearItsName) {
  const std::string precise = "precise-prefix-cache-producer";
  const auto picker = picker_of(
      {.plugins = {{"", precise}, {"", "prefix-cache-scorer", {{"prefixMatchInfoProducerName", precise}}}},
       .steps = {{"prefix-cache-scorer"}}});
  std::vector<Endpoint> endpoints;
  for (int i = 1; i <= 8; ++i) endpoints.push_back({.name = fmt::format("10.0.0.{}:80", i)});
  picker->set_endpoints(endpoints);
  std::vector<Scrape> scrapes;
  const auto there = picker->view();
  for (const Member& member : there->members) scrapes.push_back({.endpoint = member.id, .answered = true});
  picker->scraped(std::move(scrapes));
  RouteRequest request{.model = "tale", .tokens_are_exact = true};
  for (std::uint32_t token = 0; token < 16; ++token) request.tokens.push_back(token);
  const auto report = [&](std::string_view name, std::string adapter) {
    const auto view = picker->view();
    picker->cache_changed(*view->find(name),
                          {{{.kind = CacheEvent::Kind::stored,
                             .blocks = {1},
                             .tokens = request.tokens,
                             .block_size = 16,
                             .adapter = std::move(adapter)}}},
                          {});
  };
  const auto serve = [&](std::vector<std::string> adapters) {
    picker->set_models(there->members.at(0), std::nullopt, std::move(adapters));
  };
  report("10.0.0.3:80", "");
  report("10.0.0.5:80", "tale");
  const auto pick = [&] { return picker->choose(request, {}).value().picked.at(0).name; };
  EXPECT_EQ(pick(), "10.0.0.3:80") << "a name that nobody has called an adapter's is the model's";
  serve({"tale"});
  EXPECT_EQ(pick(), "10.0.0.5:80");
  picker->set_endpoints(endpoints);
  EXPECT_EQ(pick(), "10.0.0.5:80") << "who lists endpoints does not know of adapters";
  serve({});
  request.model = "another";
  EXPECT_EQ(pick(), "10.0.0.3:80");
}

}  // namespace
}  // namespace octavo::fleet
