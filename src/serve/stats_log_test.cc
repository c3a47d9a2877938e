#include "serve/stats_log.h"

#include <gmock/gmock.h>

#include "serve/process_metrics.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

TEST(StatsLog, ALineTellsWhatWasDoneMeanwhile) {
  EngineStats before;
  before.tokens.prompt = 100;
  before.tokens.generation = 50;
  before.prefix_cache.queries = 100;
  before.prefix_cache.hits = 10;
  EngineStats now = before;
  EXPECT_FALSE(stats_line(before, now, 10)) << "idle";
  now.tokens.prompt += 1000;
  now.tokens.generation += 505;
  now.prefix_cache.queries += 1000;
  now.prefix_cache.hits += 250;
  now.requests.running = 3;
  now.requests.waiting = 2;
  now.blocks.total = 8;
  now.blocks.used = 2;
  EXPECT_EQ(stats_line(before, now, 10),
            "Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation throughput: 50.5 tokens/s, "
            "Running: 3 reqs, "
            "Waiting: 2 reqs, KV cache usage: 25.0%, Prefix cache hit rate: 25.0%");
  before = now;
  EXPECT_TRUE(stats_line(before, now, 10)) << "requests wait, but nothing happens: that is worth a line";
}

TEST(StatsLog, EnginesComeAndGoBetweenTwoLines) {
  const auto engine = [](int number, int prompt_tokens) {
    EngineStats stats;
    stats.engine = number;
    stats.tokens.prompt = prompt_tokens;
    return stats;
  };
  const std::vector<EngineStats> one{engine(0, 10)}, three{engine(0, 20), engine(1, 500), engine(2, 700)},
      others{engine(0, 30), engine(2, 900)}, again{engine(0, 5), engine(2, 900)};
  EXPECT_THAT(stats_lines(one, three, 10), testing::ElementsAre(HasSubstr("Engine 000: Avg prompt throughput: 1.0")));
  EXPECT_THAT(stats_lines(three, others, 10),
              testing::ElementsAre(HasSubstr("Engine 000: Avg prompt throughput: 1.0"),
                                   HasSubstr("Engine 002: Avg prompt throughput: 20.0")));
  EXPECT_THAT(stats_lines(others, again, 10), testing::IsEmpty()) << "the first has died, the other is idle";
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  const std::string text = process_metrics();
  for (const char* name : {"cpu_seconds_total", "start_time_seconds", "virtual_memory_bytes",
                           "resident_memory_bytes", "open_fds", "max_fds"})
    EXPECT_THAT(text, HasSubstr(std::string("\nprocess_") + name + " ")) << name;
  const auto value = [&](const std::string& name) {
    const std::string start = "\nprocess_" + name + " ";
    return std::stod(text.substr(text.find(start) + start.size()));
  };
  EXPECT_GT(value("resident_memory_bytes"), 1e6);
  EXPECT_GT(value("virtual_memory_bytes"), value("resident_memory_bytes"));
  EXPECT_GT(value("open_fds"), 2);
  const double age =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() -
      value("start_time_seconds");
  EXPECT_GT(age, -2);
  EXPECT_LT(age, 3600);
}

}  // namespace
}  // namespace octavo
