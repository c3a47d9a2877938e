#include "fleet/plan/device_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/plan/pool_sizing.h"
#include "fleet/simulate/test_traffic.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

const Slo kSearchSlo{.limits = {.ttft_ms = 400}, .share = 0.95};

SimulationOptions replica_of(double token_us) {
  SimulationOptions options = small_fleet(1, "least_loaded");
  options.timing = {.fixed_us = 10'000, .token_us = token_us};
  options.prefill = {.scheduler = options.scheduler,
                     .timing = options.timing,
                     .policy = "least_loaded",
                     .kv_bytes_per_token = 1000,
                     .link_bytes_per_second = 1e9};
  return options;
}

ReplicaKind kind(const std::string& device, double token_us, double price, int devices = 1) {
  return {.device = device,
          .devices = devices,
          .max_num_seqs = 64,
          .price = price,
          .options = replica_of(token_us)};
}

Result<DeviceSearch> search(const std::vector<ReplicaKind>& kinds, SearchRules rules = {.replicas_max = 32}) {
  return search_devices(kinds, conversations(24, 4, 2'000'000), kSearchSlo, rules,
                        [](const std::string&, std::size_t, std::size_t) {});
}

TEST(DeviceSearch, TheCheapestKindIsTheAnswer) {
  const auto equal = *search({kind("slow", 100, 1), kind("fast", 25, 1)});
  EXPECT_EQ(equal.offers[equal.best].device, "fast");
  const auto dear = *search({kind("slow", 100, 1), kind("fast", 25, 100)});
  EXPECT_EQ(dear.offers[dear.best].device, "slow");
  EXPECT_THAT(dear.offers[1].why, HasSubstr("cost more"));
  const Offer& best = dear.offers[dear.best];
  EXPECT_EQ(best.price_per_hour, best.replicas);
  const auto number = [&](const char* name) { return best.trial.figures.at(name).to_number<double>(); };
  EXPECT_NEAR(best.cost_per_million_tokens,
              number("replica_hours") / (number("total_input_tokens") + number("total_output_tokens")) * 1e6,
              1e-9);
}

TEST(DeviceSearch, AReplicaCostsAllOfItsDevices) {
  const auto found = *search({kind("one", 50, 1, 1), kind("four", 50, 1, 4)});
  EXPECT_EQ(found.offers[found.best].device, "one");
  EXPECT_FALSE(found.offers[1].why.empty());
}

TEST(DeviceSearch, AKindThatCannotServeTheModelIsListedWithTheReason) {
  ReplicaKind small = kind("small", 50, 1);
  small.options = invalid("model", "no token fits");
  const auto found = *search({small, kind("large", 50, 1)});
  EXPECT_EQ(found.best, 1U);
  EXPECT_EQ(found.offers[0].why, "no token fits");
  EXPECT_THAT(device_search_text(found, kSearchSlo), HasSubstr("no token fits"));
  const auto json = device_search_json(found, kSearchSlo);
  EXPECT_EQ(json.at("best").to_number<int>(), 1);
  EXPECT_EQ(json.at("offers").at(0).at("reason").as_string(), "no token fits");
  EXPECT_GT(json.at("offers").at(1).at("tokens_per_second").as_double(), 0);
}

TEST(DeviceSearch, TheResultSaysWhichTimingsWereMeasured) {
  ReplicaKind measured = kind("measured", 50, 1);
  measured.measured = true;
  const auto found = *search({measured, kind("estimated", 50, 1)});
  const auto json = device_search_json(found, kSearchSlo);
  EXPECT_EQ(json.at("offers").at(0).at("timing").as_string(), "measured");
  EXPECT_EQ(json.at("offers").at(1).at("timing").as_string(), "roofline");
}

TEST(DeviceSearch, AnSloThatNoKindMeetsIsAnError) {
  const auto none = search({kind("slow", 10'000, 1)}, {.replicas_max = 2});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().field, "slo");
}

TEST(PoolSizing, FindsTheSmallestSumOfBothPools) {
  const Trace trace = conversations(24, 4, 2'000'000);
  const Slo strict{.limits = {.ttft_ms = 2000, .tpot_ms = 13}, .share = 0.95};
  const auto progress = [](int, std::size_t, std::size_t) {};
  const auto found = size_pools(replica_of(100), trace, strict, 16, progress).value();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->trial.meets_slo);
  SimulationOptions options = replica_of(100);
  for (int prefill = 1; prefill < found->prefill + found->decode - 1; ++prefill) {
    options.prefill.replicas = prefill;
    options.replicas = found->prefill + found->decode - 1 - prefill;
    EXPECT_FALSE(try_fleet(options, trace, strict, progress)->meets_slo) << prefill;
  }
  EXPECT_FALSE(
      size_pools(replica_of(100), trace, {.limits = {.ttft_ms = 1}, .share = 1}, 4, progress).value());
}

TEST(DeviceSearch, PoolsAreOfferedBesideOnePool) {
  const auto found = *search({kind("slow", 100, 1)}, {.replicas_max = 32, .pools = true});
  ASSERT_EQ(found.offers.size(), 2U);
  EXPECT_FALSE(found.offers[0].pools);
  EXPECT_TRUE(found.offers[1].pools);
}

}  // namespace
}  // namespace octavo::fleet
