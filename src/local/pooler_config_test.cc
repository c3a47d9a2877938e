#include "local/pooler_config.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

Result<RuntimeOptions> read(const char* json) {
  RuntimeOptions options;
  TRY_VOID(read_pooler_config(boost::json::parse(json).as_object(), options));
  return options;
}

TEST(PoolerConfig, GoesToTheEngineAndToTheServer) {
  const auto options = read(R"({"pooling_type": "MEAN", "use_activation": false, "dimensions": 7,
                                "enable_chunked_processing": true, "max_embed_len": 5000,
                                "logit_mean": 0.5, "logit_sigma": 2})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->engine.model.pooling_type, "MEAN");
  EXPECT_EQ(options->serve.pooling.activated, false);
  EXPECT_EQ(options->serve.pooling.dimensions, 7);
  EXPECT_EQ(options->serve.pooling.longest, 5000);
  EXPECT_EQ(options->serve.pooling.score_mean, 0.5F);
  EXPECT_EQ(options->serve.pooling.score_sigma, 2.0F);
  const auto older =
      read(R"({"seq_pooling_type": "CLS", "normalize": true, "logit_bias": 1, "logit_scale": 4})");
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(older->engine.model.pooling_type, "CLS");
  EXPECT_EQ(older->serve.pooling.activated, true);
  EXPECT_EQ(older->serve.pooling.score_sigma, 0.25F);
  const auto steps = read(R"({"pooling_type": "STEP", "step_tag_id": 12, "returned_token_ids": [1, 0]})");
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(steps->engine.model.pooling_type, "ALL");
  EXPECT_EQ(steps->serve.pooling.step_tag, 12);
  EXPECT_EQ(steps->serve.pooling.returned, (std::vector<int>{1, 0}));
  const auto task = read(R"({"task": "token_classify"})");
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->serve.pooling.task, Task::token_classify);
}

TEST(PoolerConfig, ErrorsNameTheField) {
  const auto field = [](const char* json) {
    const auto options = read(json);
    return options ? std::string("none") : options.error().field;
  };
  EXPECT_EQ(field(R"({"pooling_type": "SUM"})"), "pooling_type");
  EXPECT_EQ(field(R"({"pooling_type": "CLS", "tok_pooling_type": "ALL"})"), "tok_pooling_type");
  EXPECT_EQ(field(R"({"enable_chunked_processing": true})"), "max_embed_len");
  EXPECT_EQ(field(R"({"max_embed_len": 5})"), "enable_chunked_processing");
  EXPECT_EQ(field(R"({"logit_sigma": 0})"), "logit_sigma");
  EXPECT_EQ(field(R"({"logit_scale": 0})"), "logit_scale");
  EXPECT_EQ(field(R"({"step_tag_id": 5})"), "step_tag_id");
  EXPECT_EQ(field(R"({"pooling_type": "ALL", "returned_token_ids": [5]})"), "returned_token_ids");
  EXPECT_EQ(field(R"({"pooling_type": "STEP", "step_tag_id": -5})"), "step_tag_id");
  EXPECT_EQ(field(R"({"dimensions": 0})"), "dimensions");
  EXPECT_EQ(field(R"({"task": "generate"})"), "task");
  EXPECT_EQ(field(R"({"poolingtype": "CLS"})"), "poolingtype");
}

}  // namespace
}  // namespace octavo
