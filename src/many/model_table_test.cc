// Tests of calls that wait for a first load. The engine of the tests never starts.
#include "many/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/testing/eventually.h"

namespace octavo::many {
namespace {

using testing::HasSubstr;

ModelSource endless(const std::string& name) {
  ModelSource source{.names = {name}, .rules = {.weight_bytes = 10}};
  source.options.engine.model.dir = "models/demo";
  source.options.program.path = "/bin/sh";
  source.options.program.command = {"sh", "-c", "exec sleep 1000"};
  return source;
}

// `models` models, and memory for one. The first one is loading.
std::shared_ptr<ModelTable> table_that_loads(std::int64_t waiting_bytes_max = ModelTable::kWaitingBytesMax,
                                             int models = 2) {
  std::vector<ModelSource> sources;
  for (int i = 0; i < models; ++i) sources.push_back(endless(std::string(1, static_cast<char>('a' + i))));
  sources[0].preload = true;
  auto table = ModelTable::open({.memory_bytes = 10}, std::move(sources), waiting_bytes_max).value();
  EXPECT_TRUE(eventually([&] { return table->status()[0].state == "loading"; }));
  return table;
}

Call cancellable(std::int64_t bytes = 0) {
  return {.cancelled = std::make_shared<std::atomic<bool>>(false), .bytes = bytes};
}

TEST(ModelTableTest, AStopEndsAFirstLoadAndItsCalls) {
  const auto table = table_that_loads();
  std::vector<Error> errors;
  for (const std::size_t model : {0, 1})
    table->service_of(model, {}, [&](const auto& service) { errors.push_back(service.error()); });
  EXPECT_TRUE(errors.empty());
  table->end_first_loads();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].code, ErrorCode::unavailable);
  EXPECT_THAT(errors[0].message, HasSubstr("shutting down"));
  table->load(1, {}, [&](const auto& loaded) { errors.push_back(loaded.error()); });
  EXPECT_EQ(errors.size(), 3u) << "no load begins";
  EXPECT_TRUE(eventually([&] { return table->status()[0].state == "failed"; }));
  table->stop();
}

TEST(ModelTableTest, ACancelledCallIsForgotten) {
  const auto table = table_that_loads();
  const auto exchange = std::make_shared<int>();  // which the call owns
  const Call first = cancellable(), second = cancellable();
  int answers = 0;
  for (const Call& call : {first, second})
    table->service_of(1, call, [&answers, exchange](const auto&) { ++answers; });
  EXPECT_EQ(exchange.use_count(), 3);
  table->cancel(1, first.cancelled);
  EXPECT_EQ(exchange.use_count(), 2);
  EXPECT_NE(table->status()[1].model.wanted_us, 0) << "the second call waits";
  table->cancel(1, second.cancelled);
  EXPECT_EQ(table->status()[1].model.wanted_us, 0) << "the model is not loaded for nobody";
  table->load(1, second, [&answers, exchange](const Result<>&) { ++answers; });
  EXPECT_EQ(exchange.use_count(), 1) << "the client had disconnected before";
  table->stop();
  EXPECT_EQ(answers, 0);
}

TEST(ModelTableTest, TheBytesOfWaitingRequestsHaveALimit) {
  const auto table = table_that_loads(1'000'000, 3);
  std::vector<Error> errors;
  const auto note = [&](const auto& service) { errors.push_back(service.error()); };
  const Call first = cancellable(400'000);
  table->service_of(0, first, note);
  EXPECT_TRUE(errors.empty());
  table->service_of(0, {.bytes = 101'000}, note);
  ASSERT_EQ(errors.size(), 1u) << "one model has at most half of the bytes";
  EXPECT_EQ(errors[0].code, ErrorCode::resource_exhausted);
  EXPECT_THAT(errors[0].message, HasSubstr("limit is 0.5 MB"));
  table->service_of(1, {.bytes = 500'000}, note);
  EXPECT_EQ(errors.size(), 1u);
  table->service_of(2, {.bytes = 101'000}, note);
  ASSERT_EQ(errors.size(), 2u) << "the limit applies to all models together";
  EXPECT_EQ(errors[1].code, ErrorCode::resource_exhausted);
  EXPECT_THAT(errors[1].message, HasSubstr("1.0 MB"));
  table->cancel(0, first.cancelled);
  table->service_of(2, {.bytes = 101'000}, note);
  EXPECT_EQ(errors.size(), 2u);
  table->stop();
}

// The exchange of a request with `keep_alive` calls keep() when it is destroyed.
TEST(ModelTableTest, ACallWhoseTimeIsOverMayUseTheTableAtItsEnd) {
  const auto table = table_that_loads();
  std::atomic<bool> ended = false;
  {
    const auto keep = [&](const void*) {
      table->keep(1, 1);
      ended = true;
    };
    table->service_of(1, {.deadline_us = now_us() + 20'000},
                      [end = std::shared_ptr<const void>(nullptr, keep)](const auto&) {});
  }
  EXPECT_TRUE(eventually([&] { return ended.load(); }));
  table->stop();
}

}  // namespace
}  // namespace octavo::many
