// Tests of calls that wait for a first load. The engine of the tests never starts.
#include "many/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/eventually.h"

namespace octavo::many {
namespace {

using testing::HasSubstr;

ModelSource endless(const std::string& name) {
  ModelSource source{.names = {name}, .rules = {.weight_bytes = 10}};
  source.options.engine.model.dir = "models/demo";
  source.options.engine_program = "/bin/sh";
  source.options.engine_command = {"sh", "-c", "exec sleep 1000"};
  return source;
}

// Two models, and memory for one. The first one is loading.
std::shared_ptr<ModelTable> table_that_loads(std::int64_t waiting_bytes_max = ModelTable::kWaitingBytesMax) {
  std::vector<ModelSource> sources{endless("a"), endless("b")};
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
  const auto table = table_that_loads(1'000'000);
  std::vector<Error> errors;
  const auto note = [&](const auto& service) { errors.push_back(service.error()); };
  const Call first = cancellable(600'000);
  table->service_of(0, first, note);
  EXPECT_TRUE(errors.empty());
  table->service_of(1, {.bytes = 401'000}, note);
  ASSERT_EQ(errors.size(), 1u) << "the limit applies to all models together";
  EXPECT_EQ(errors[0].code, ErrorCode::resource_exhausted);
  EXPECT_THAT(errors[0].message, HasSubstr("1.0 MB"));
  table->cancel(0, first.cancelled);
  table->service_of(1, {.bytes = 401'000}, note);
  EXPECT_EQ(errors.size(), 1u);
  table->stop();
}

}  // namespace
}  // namespace octavo::many
