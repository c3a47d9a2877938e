// The routes by which a trainer sends weights, and the weight versions in answers.
#include <gmock/gmock.h>

#include <future>

#include "base/testing/scratch_directory.h"
#include "serve/serve_fixture.h"
#include "weights/testing/safetensors_text.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

class ServeWeightsTest : public ServeTest {
 protected:
  void SetUp() override {
    model_.write("model.safetensors", safetensors_text({{"a", {1, 2}}, {"b", {3}}}));
    serve([](const Request&, int) { return Script{.tokens = ending("hello")}; },
          [&](ServeOptions& options, http::ServerOptions&) {
            options.features.dev_mode = true;
            options.model.path = model_.path();
          });
  }
  http::Response send(const std::string& bytes, const std::string& range = {}) {
    http::Headers headers{{"Content-Type", "application/octet-stream"}};
    if (!range.empty()) headers.add("Content-Range", range);
    return client().request("POST", "/update_weights", bytes, headers).value();
  }
  std::string version() {
    return std::string(json::parse(client().get("/weight_info")->body).at("weight_version").as_string());
  }
  std::string error(const http::Response& response, int status = 400) {
    EXPECT_EQ(response.status, status) << response.body;
    return response.status == 200
               ? ""
               : std::string(json::parse(response.body).at("error").at("message").as_string());
  }

  ScratchDirectory model_;
};

TEST_F(ServeWeightsTest, AnUpdateNamesTheVersionOfLaterTokens) {
  EXPECT_EQ(version(), "default");
  EXPECT_EQ(post("/init_weight_transfer_engine", R"({"init_info":{"backend":"safetensors"}})").status, 200);
  EXPECT_EQ(client().request("POST", "/start_weight_update")->status, 200);
  EXPECT_EQ(send(safetensors_text({{"b", {30}}})).status, 200);
  EXPECT_EQ(post("/finish_weight_update", R"({"weight_version":"step 7"})").status, 200);
  ASSERT_EQ(engine_->reloads.folders.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(engine_->reloads.folders[0] + "/model.safetensors.index.json"));
  EXPECT_EQ(version(), "step 7");
  const json::value spans = json::parse(R"([{"version":"step 7","start":0,"end":3}])");
  const json::object answer =
      reply("/inference/v1/generate", R"({"token_ids":[72],"sampling_params":{"max_tokens":3}})");
  EXPECT_EQ(answer.at("choices").at(0).at("weight_versions"), spans);
  const json::object chat =
      reply("/v1/chat/completions", kChat + R"(,"max_tokens":3,"return_token_ids":true})");
  EXPECT_EQ(chat.at("choices").at(0).at("weight_versions"), spans);
  const std::vector<std::string> streamed = events(
      post("/v1/completions", kCompletion + R"(,"max_tokens":3,"return_token_ids":true,"stream":true})"));
  EXPECT_EQ(json::parse(streamed[streamed.size() - 2]).at("choices").at(0).at("weight_versions"), spans);
}

TEST_F(ServeWeightsTest, TheVersionChangesWithinAnAnswer) {
  // The answer takes several seconds until the version has changed, so that a busy machine is not too late.
  serve([](const Request&, int) { return Script{.tokens = bytes_of(std::string(180, 'x')), .hang = true}; },
        [&](ServeOptions& options, http::ServerOptions&) { options.features.dev_mode = true; }, 50'000);
  auto answer = std::async(std::launch::async, [&] {
    return reply("/inference/v1/generate", R"({"token_ids":[72],"sampling_params":{"max_tokens":180}})");
  });
  ASSERT_TRUE(eventually([&] { return engine_->delivered > 3; }));
  EXPECT_EQ(post("/update_weight_version", R"({"new_version":"2"})").status, 200);
  engine_->step_us = 0;
  const json::object whole = answer.get();
  const json::array& spans = whole.at("choices").at(0).at("weight_versions").as_array();
  ASSERT_EQ(spans.size(), 2U) << json::serialize(spans);
  EXPECT_EQ(spans[0].at("version"), "default");
  EXPECT_EQ(spans[0].at("start"), 0);
  EXPECT_GT(spans[0].at("end").as_int64(), 3);
  EXPECT_EQ(spans[1].at("start"), spans[0].at("end"));
  EXPECT_EQ(spans[1].at("end"), 180);
}

TEST_F(ServeWeightsTest, PartsAndFilesOfThisHost) {
  const std::string file = safetensors_text({{"a", {10, 20}}});
  ASSERT_EQ(post("/start_weight_update", "").status, 200);
  EXPECT_THAT(send(file.substr(0, 20), fmt::format("bytes 0-19/{}", file.size())).body, HasSubstr("Part"));
  EXPECT_THAT(error(send(file.substr(20), "bytes 20-30/12")), HasSubstr("Content-Range"));
  EXPECT_EQ(send(file.substr(20), fmt::format("bytes 20-{}/{}", file.size() - 1, file.size())).status, 200);
  model_.write("elsewhere/b.safetensors", safetensors_text({{"b", {31}}}));
  const std::string path = model_ / "elsewhere/b.safetensors";
  EXPECT_EQ(post("/update_weights", fmt::format(R"({{"update_info":[{{"path":"{}"}}]}})", path)).status, 200);
  EXPECT_EQ(post("/finish_weight_update", "{}").status, 200);
  EXPECT_EQ(version(), "default");
}

TEST_F(ServeWeightsTest, AnEngineThatRefusesKeepsWeightsAndVersion) {
  engine_->reloads.result = failure(ErrorCode::corrupt, "the shape is wrong");
  ASSERT_EQ(post("/start_weight_update", "").status, 200);
  ASSERT_EQ(send(safetensors_text({{"b", {30}}})).status, 200);
  EXPECT_THAT(error(post("/finish_weight_update", R"({"weight_version":"2"})"), 500), HasSubstr("shape"));
  EXPECT_EQ(version(), "default");
  EXPECT_EQ(post("/start_weight_update", "").status, 200) << "the next update can begin";
}

TEST_F(ServeWeightsTest, ErrorsNameTheFieldAndTheWay) {
  EXPECT_THAT(error(post("/finish_weight_update", ""), 503), HasSubstr("/start_weight_update"));
  EXPECT_THAT(
      error(post("/init_weight_transfer_engine", R"({"init_info":{"master_address":"h","world_size":2}})")),
      HasSubstr("init_info.master_address"));
  ASSERT_EQ(post("/start_weight_update", "").status, 200);
  EXPECT_THAT(error(post("/update_weights", R"({"update_info":{"names":["a"],"dtype_names":["bfloat16"]}})")),
              HasSubstr("update_info.dtype_names"));
  EXPECT_THAT(error(post("/update_weights", R"({"update_info":{"path":"/nothing"}})"), 404),
              HasSubstr("/nothing"));
  EXPECT_THAT(error(send("")), HasSubstr("safetensors"));
  EXPECT_THAT(error(post("/update_weight_version", R"({"new_version":""})")), HasSubstr("new_version"));
  EXPECT_EQ(client().get("/update_weights")->status, 405);
  EXPECT_EQ(post("/shutdown_weight_transfer_engine", "").status, 200);
  EXPECT_EQ(post("/start_weight_update", "").status, 200);
}

}  // namespace
}  // namespace octavo
