#include "local/options_json.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

Result<RuntimeOptions> read(std::string_view json) {
  return runtime_options(boost::json::parse(json).as_object(), [](const char*) { return std::string(); });
}

TEST(OptionsJson, FieldsAreFlags) {
  const auto options =
      read(R"({"model": "some/folder", "max_model_len": 4096, "kv_cache_memory_bytes": "64M", "device": null,
               "enable_prefix_caching": false, "enforce_eager": true, "gpu_memory_utilization": 0.5,
               "speculative_config": {"method": "ngram", "num_speculative_tokens": 3}})");
  ASSERT_TRUE(options.has_value()) << options.error().message;
  const EngineOptions& engine = options->engine;
  EXPECT_EQ(engine.model.dir, "some/folder");
  EXPECT_EQ(engine.model.max_model_len, 4096);
  EXPECT_EQ(engine.cache.memory_bytes, 64 << 20);
  EXPECT_EQ(engine.device.type, "auto");
  EXPECT_FALSE(engine.cache.enable_prefix_caching);
  EXPECT_TRUE(engine.device.enforce_eager);
  EXPECT_EQ(engine.device.gpu_memory_utilization, 0.5);
  EXPECT_TRUE(engine.speculation.has_value());
}

TEST(OptionsJson, MistakesAreNamed) {
  const auto unknown = read(R"({"max_len": 1})");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().field, "max_len");
  for (const auto* json :
       {R"({"max_model_len": 0})", R"({"max_model_len": "many"})", R"({"max_model_len": true})",
        R"({"enforce_eager": 1})", R"({"device": "abacus"})", R"({"help": true})"}) {
    const auto options = read(json);
    ASSERT_FALSE(options.has_value()) << json;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument) << json;
  }
}

}  // namespace
}  // namespace octavo
