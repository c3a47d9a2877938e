// Fields and routes that vLLM's tests and clients rely on, through the whole server.
#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

// Python clients read attributes without asking whether they exist.
TEST_F(ServeTest, FieldsThatARequestDidNotAskForAreNull) {
  serve_text("Hi");
  const json::object chat = reply("/v1/chat/completions", kChat + "}");
  for (const char* name : {"prompt_logprobs", "prompt_token_ids", "kv_transfer_params", "service_tier"})
    EXPECT_TRUE(chat.at(name).is_null()) << name;
  const json::value& choice = chat.at("choices").at(0);
  EXPECT_TRUE(choice.at("token_ids").is_null());
  for (const char* name : {"reasoning", "refusal"})
    EXPECT_TRUE(choice.at("message").at(name).is_null()) << name;
  const json::object completion = reply("/v1/completions", kCompletion + "}");
  for (const char* name : {"kv_transfer_params", "service_tier"})
    EXPECT_TRUE(completion.at(name).is_null()) << name;
  for (const char* name : {"prompt_logprobs", "prompt_token_ids", "token_ids", "logprobs"})
    EXPECT_TRUE(completion.at("choices").at(0).at(name).is_null()) << name;
}

TEST_F(ServeTest, InvocationsAreChatsOrCompletions) {
  serve_text("Hi");
  EXPECT_EQ(reply("/invocations", kChat + "}").at("object"), "chat.completion");
  EXPECT_EQ(reply("/invocations", kCompletion + "}").at("object"), "text_completion");
  EXPECT_EQ(events(post("/invocations", kChat + R"(,"stream":true})")).back(), "[DONE]");
  EXPECT_THAT(post("/invocations", R"({"input":"x"})").body, HasSubstr("must have messages"));
  EXPECT_EQ(post("/invocations", R"({"messages":[],"model":"demo"})").status, 400);
  EXPECT_EQ(post("/invocations", "[").status, 400);
}

}  // namespace
}  // namespace octavo
