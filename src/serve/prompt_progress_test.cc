// Streams that report the progress of the prompt.
#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class PromptProgressTest : public ServeTest {
 protected:
  void SetUp() override {
    serve([](const Request&, int) { return Script{.tokens = ending("Hey"), .computed = {1, 1, 2}}; });
  }
  // Returns the progress events of a stream as "cache/processed/total". After the first event without
  // progress, no event may have any.
  std::vector<std::string> progress(const std::string& path, const std::string& body) {
    std::vector<std::string> shown;
    bool answering = false;
    for (const std::string& event : events(post(path, body))) {
      const json::value chunk = event == "[DONE]" ? json::object() : json::parse(event);
      const json::value* found = chunk.as_object().if_contains("prompt_progress");
      EXPECT_TRUE(!found || !answering) << "progress comes before the answer";
      if (!found) {
        answering = true;
        continue;
      }
      EXPECT_EQ(chunk.at("choices").as_array().size(), 1U) << "clients read choices[0]";
      EXPECT_GE(found->at("time_ms").to_number<double>(), 0);
      shown.push_back(fmt::format("{}/{}/{}", found->at("cache").as_int64(),
                                  found->at("processed").as_int64(), found->at("total").as_int64()));
    }
    return shown;
  }
};

TEST_F(PromptProgressTest, BothNamesOfTheFieldReportEachStepOnce) {
  const std::string stream = kCompletion + R"(,"stream":true,)";
  EXPECT_THAT(progress("/v1/completions", stream + R"("return_progress":true})"),
              ElementsAre("1/1/4", "1/2/4", "1/4/4"));
  EXPECT_THAT(progress("/v1/completions", stream + R"("stream_options":{"include_progress":true}})"),
              ElementsAre("1/1/4", "1/2/4", "1/4/4"));
  EXPECT_EQ(progress("/v1/chat/completions", kChat + R"(,"stream":true,"return_progress":true})").size(), 3U);
}

TEST_F(PromptProgressTest, PromptsAreAddedUp) {
  const std::string body =
      post("/v1/completions", R"({"prompt":["ab","cde"],"stream":true,"return_progress":true})").body;
  EXPECT_THAT(body, HasSubstr(R"("total":5,"cache":2,"processed":5)"));
}

TEST_F(PromptProgressTest, OnlyStreamsThatAskGetIt) {
  EXPECT_THAT(progress("/v1/completions", kCompletion + R"(,"stream":true})"), ElementsAre());
  EXPECT_THAT(post("/v1/completions", kCompletion + R"(,"return_progress":true})").body,
              Not(HasSubstr("prompt_progress")));
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"return_progress":1})").status, 400);
}

}  // namespace
}  // namespace octavo
