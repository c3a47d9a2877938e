#include "serve/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/testing/scratch_directory.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

// An engine that only records steps, as the test calls step().
class SteppingEngine final : public EngineClient {
 public:
  void step(int prompt_tokens, int answer_tokens) {
    const std::lock_guard lock(mutex_);
    const std::int64_t number = ++stats_.recent_steps_count;
    stats_.all.recent_steps[static_cast<std::size_t>(number) % stats_.all.recent_steps.size()] = {
        .number = number,
        .prompt_tokens = prompt_tokens,
        .answer_tokens = answer_tokens,
        .sequences = 1,
        .began_us = 1000 * number,
        .forward_us = 700,
        .microseconds = 900};
  }
  void start_again() {
    const std::lock_guard lock(mutex_);
    stats_ = {};
  }

  EngineInfo info() const override { return {}; }
  Result<RequestId> submit(Request, std::shared_ptr<OutputSink>) override { return RequestId{1}; }
  void abort(RequestId) override {}
  void reset_prefix_cache() override {}
  std::vector<EngineStats> stats() const override {
    const std::lock_guard lock(mutex_);
    return {stats_.all};
  }
  void drain() override {}

 private:
  struct {
    EngineStats all;
    std::int64_t recent_steps_count = 0;
  } stats_;
  mutable std::mutex mutex_;
};

class StepTraceTest : public testing::Test {
 protected:
  Result<StepTraceOptions> options(std::string_view more) const {
    return read_profiler_config(
        json::parse(R"({"profiler": "torch", "torch_profiler_dir": ")" + (scratch_ / "traces").string() +
                    R"(", "torch_profiler_use_gzip": false)" + std::string(more) + "}")
            .as_object());
  }

  // Reads and removes the only trace file.
  json::object take_file() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "traces"))
      files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1U);
    std::ifstream file(files.at(0));
    std::ostringstream text;
    text << file.rdbuf();
    std::filesystem::remove(files[0]);
    return json::parse(text.str()).as_object();
  }

  static std::vector<std::int64_t> steps_of(const json::object& trace) {
    std::vector<std::int64_t> steps;
    for (const json::value& event : trace.at("traceEvents").as_array())
      if (const json::object* args =
              event.as_object().if_contains("args") ? &event.at("args").as_object() : nullptr;
          args != nullptr && args->contains("step"))
        steps.push_back(args->at("step").as_int64());
    return steps;
  }

  ScratchDirectory scratch_;
  SteppingEngine engine_;
};

TEST_F(StepTraceTest, HasTheStepsOfItsTime) {
  StepTrace trace(engine_, options("").value());
  engine_.step(8, 0);
  ASSERT_TRUE(trace.start({}));
  engine_.step(4, 1);
  engine_.step(0, 2);
  ASSERT_TRUE(trace.stop());
  const json::object file = take_file();
  EXPECT_THAT(steps_of(file), testing::ElementsAre(2, 3));
  const std::string text = json::serialize(file);
  EXPECT_THAT(text,
              HasSubstr(R"({"name":"prefill and decode","ph":"X","pid":0,"tid":0,"ts":2000,"dur":900,)"));
  EXPECT_THAT(text, HasSubstr(R"({"name":"sample","ph":"X","pid":0,"tid":0,"ts":2700,"dur":200})"));
  EXPECT_EQ(file.at("otherData").at("steps_lost"), 0);
}

TEST_F(StepTraceTest, LeavesOutStepsAndEndsByItself) {
  StepTrace trace(engine_, options(R"(, "max_iterations": 9)").value());
  ASSERT_TRUE(trace.start({{"delay_iterations", 1}, {"max_iterations", 2}}));
  for (int i = 0; i < 5; ++i) engine_.step(0, 1);
  ASSERT_TRUE(trace.stop());
  EXPECT_THAT(steps_of(take_file()), testing::ElementsAre(2, 3));
}

TEST_F(StepTraceTest, SaysHowManyStepsItHasMissed) {
  StepTrace trace(engine_, options("").value());
  engine_.step(0, 1);
  ASSERT_TRUE(trace.start({}));
  for (int i = 0; i < 300; ++i) engine_.step(0, 1);
  ASSERT_TRUE(trace.stop());
  const json::object file = take_file();
  EXPECT_EQ(
      static_cast<std::int64_t>(steps_of(file).size()) + file.at("otherData").at("steps_lost").as_int64(),
      300);
}

TEST_F(StepTraceTest, FollowsAnEngineThatIsStartedAgain) {
  StepTrace trace(engine_, options("").value());
  for (int i = 0; i < 5; ++i) engine_.step(0, 1);
  ASSERT_TRUE(trace.start({}));
  engine_.start_again();
  engine_.step(0, 1);
  ASSERT_TRUE(trace.stop());
  EXPECT_THAT(steps_of(take_file()), testing::ElementsAre(1));
}

TEST_F(StepTraceTest, OneAtATime) {
  StepTrace trace(engine_, options("").value());
  EXPECT_FALSE(trace.stop());
  ASSERT_TRUE(trace.start({{"profile_prefix", "a"}}));
  EXPECT_THAT(trace.start({}).error().message, HasSubstr("already"));
  ASSERT_TRUE(trace.stop());
  EXPECT_FALSE(trace.stop());
}

TEST_F(StepTraceTest, MistakesAreNamed) {
  StepTrace off(engine_, {});
  EXPECT_EQ(off.start({}).error().field, "profiler_config");
  StepTrace trace(engine_, options("").value());
  for (const char* prefix : {"", "../x", "-x", "a/b", "\xff"})
    EXPECT_EQ(trace.start({{"profile_prefix", prefix}}).error().field, "profile_prefix") << prefix;
  EXPECT_EQ(trace.start({{"max_iterations", -1}}).error().field, "max_iterations");
  StepTrace elsewhere(engine_, {.folder = "/proc/no/such"});
  EXPECT_THAT(elsewhere.start({}).error().message, HasSubstr("/proc/no/such"));
  for (const auto& [config, field] :
       {std::pair(R"({"profiler": "cuda"})", "profiler"),
        std::pair(R"({"profiler": "torch"})", "torch_profiler_dir"),
        std::pair(R"({"profiler": "torch", "torch_profiler_dir": "x", "torch_profiler_with_memory": true})",
                  "torch_profiler_with_memory")})
    EXPECT_EQ(read_profiler_config(json::parse(config).as_object()).error().field, field);
}

TEST_F(ServeTest, ProfilesOverHttp) {
  const ScratchDirectory scratch;
  serve({}, [&](ServeOptions& options, http::ServerOptions&) {
    options.features.profiles = true;
    options.observe.step_trace.folder = scratch.path();
  });
  EXPECT_EQ(client().request("POST", "/stop_profile", {}, {}).value().status, 400);
  EXPECT_EQ(client().request("POST", "/start_profile", R"({"profile_prefix": "a"})", {}).value().status, 200);
  EXPECT_EQ(client().request("POST", "/start_profile", {}, {}).value().status, 400);
  EXPECT_EQ(client().request("POST", "/stop_profile", {}, {}).value().status, 200);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST_F(ServeTest, NoProfilesWithoutTheirFlag) {
  serve_text("x");
  EXPECT_EQ(client().request("POST", "/start_profile", {}, {}).value().status, 404);
}

}  // namespace
}  // namespace octavo
