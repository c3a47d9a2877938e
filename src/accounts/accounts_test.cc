#include "accounts/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <thread>
#include <vector>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;

AnswerCost some_cost(std::int64_t tokens) {
  AnswerCost cost;
  cost[CostUnit::output_tokens] = tokens;
  cost[CostUnit::compute_nanoseconds] = 2'000'000'000;
  return cost;
}

Result<Prices> prices(std::string_view text) { return read_prices(boost::json::parse(text)); }

TEST(PricesTest, GiveMoney) {
  const auto read =
      prices(R"({"currency": "EUR", "prices": {"output_tokens": 0.5, "compute_nanoseconds": 1e-9}})");
  ASSERT_TRUE(read);
  EXPECT_DOUBLE_EQ(read->money(some_cost(3)), 1.5 + 2);
  EXPECT_EQ(boost::json::serialize(cost_json(some_cost(3), nullptr)),
            R"({"output_tokens":3,"compute_nanoseconds":2000000000})");
  EXPECT_THAT(boost::json::serialize(cost_json(some_cost(3), &*read)), HasSubstr(R"("currency":"EUR")"));
}

TEST(PricesTest, WrongFilesAreRefusedByField) {
  for (const auto& [text, field] :
       {std::pair(R"([])", "prices"), std::pair(R"({"prices": {"output_tokens": 1}})", "currency"),
        std::pair(R"({"currency": "EUR"})", "prices"),
        std::pair(R"({"currency": "EUR", "prices": {"output_tokens": -1}})", "prices.output_tokens"),
        std::pair(R"({"currency": "EUR", "prices": {"output_tokens": "x"}})", "prices.output_tokens"),
        std::pair(R"({"currency": "EUR", "prices": {"tokens": 1}})", "prices.tokens"),
        std::pair(R"({"currency": "EUR", "prices": {"output_tokens": 1}, "x": 1})", "x")}) {
    const auto read = prices(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().field, field) << text;
  }
}

TEST(TenantCostsTest, KeysNeverAppear) {
  EXPECT_EQ(hashed_tenant("Bearer sk-1"), hashed_tenant("Bearer sk-1"));
  EXPECT_NE(hashed_tenant("Bearer sk-1"), hashed_tenant("Bearer sk-2"));
  EXPECT_THAT(hashed_tenant("Bearer sk-1"), testing::MatchesRegex("tenant-[0-9a-f]{12}"));
}

TEST(TenantCostsTest, LabelsAreShortAndPrintable) {
  EXPECT_EQ(tenant_label(""), "anonymous");
  EXPECT_EQ(tenant_label("team a\n\xff"), "team a__");
  EXPECT_EQ(tenant_label(std::string(1000, 'x')), std::string(64, 'x'));
}

TEST(TenantCostsTest, SumsByTenantUpToALimit) {
  TenantCosts costs("octavo");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) costs.add("acme", some_cost(3), 1);
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2000; ++i) costs.add("t" + std::to_string(i), some_cost(1), 1);
  const std::string text = costs.metrics(Prices{.currency = "EUR", .per_unit = {0, 0, 0, 0, 0, 0, 2}});
  EXPECT_THAT(text, HasSubstr("octavo_tenant_output_tokens_total{tenant=\"acme\"} 12000\n"));
  EXPECT_THAT(text, HasSubstr("octavo_tenant_compute_seconds_total{tenant=\"acme\"} 8000\n"));
  EXPECT_THAT(text, HasSubstr("octavo_tenant_finished_requests_total{tenant=\"acme\"} 4000\n"));
  EXPECT_THAT(text, HasSubstr("octavo_tenant_money_total{tenant=\"acme\",currency=\"EUR\"} 24000\n"));
  EXPECT_THAT(text, HasSubstr("octavo_tenant_output_tokens_total{tenant=\"other\"} 1001\n"));
  EXPECT_THAT(text, HasSubstr("{tenant=\"t998\"}"));
  EXPECT_THAT(text, Not(HasSubstr("{tenant=\"t999\"}")));
}

TEST(AccountsTest, TheAccessLogHasALineOfJsonForEachRequest) {
  const ScratchDirectory folder;
  const std::string file = folder / "access.jsonl";
  {
    Accounts accounts({.access_log = file});
    ASSERT_TRUE(accounts.open());
    for (int i = 0; i < 3; ++i)
      accounts.log({.id = "id \"1\"\n",
                    .tenant = "acme",
                    .path = "/v1/completions",
                    .model = "demo",
                    .finish = "stop",
                    .prompt_tokens = 7,
                    .answers = 1,
                    .seconds = 0.5,
                    .cost = some_cost(i)});
  }
  std::ifstream lines(file);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    const boost::json::object entry = boost::json::parse(line).as_object();
    EXPECT_EQ(entry.at("tenant"), "acme");
    EXPECT_EQ(entry.at("cost").as_object().contains("output_tokens"), count > 0);
    EXPECT_FALSE(entry.contains("status"));
  }
  EXPECT_EQ(count, 3);
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
}

TEST(AccountsTest, AFileThatCannotBeWrittenIsAnError) {
  Accounts accounts({.access_log = "/nonexistent/access.jsonl"});
  const auto opened = accounts.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().field, "--access-log");
}

}  // namespace
}  // namespace octavo
