// Tests /inference/v1/generate, the routes that render prompts to token ids, and fill-in-the-middle.
#include <gmock/gmock.h>

#include <boost/json/value_to.hpp>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

class InferenceTest : public ServeTest {
 protected:
  static std::vector<TokenId> ids(const json::value& list) {
    return json::value_to<std::vector<TokenId>>(list);
  }
};

TEST_F(InferenceTest, TokensInTokensOut) {
  serve_text("hello");
  const json::object whole = reply(
      "/inference/v1/generate",
      R"({"request_id":"r","token_ids":[72,105],"sampling_params":{"max_tokens":3,"temperature":0,"detokenize":false}})");
  EXPECT_EQ(whole.at("request_id"), "r");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("Hi"));
  const json::value& choice = whole.at("choices").at(0);
  EXPECT_EQ(ids(choice.at("token_ids")), bytes_of("hel"));
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(whole.at("usage").at("completion_tokens"), 3);

  const http::Response stream = post(
      "/inference/v1/generate", R"({"token_ids":[72],"stream":true,"sampling_params":{"max_tokens":9}})");
  std::vector<TokenId> streamed;
  const std::vector<std::string> all = events(stream);
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(all.back(), "[DONE]");
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const json::value event = json::parse(all[i]);
    for (const TokenId id : ids(event.at("choices").at(0).at("token_ids"))) streamed.push_back(id);
  }
  EXPECT_EQ(streamed, ending("hello"));
}

// Unlike in completions, where the default of max_tokens is 16.
TEST_F(InferenceTest, WithoutALimitTheAnswerFillsTheContext) {
  serve_text("hello");
  for (const char* sampling : {R"({})", R"({"max_tokens":null})"}) {
    const json::object whole = reply(
        "/inference/v1/generate", fmt::format(R"({{"token_ids":[72,105],"sampling_params":{}}})", sampling));
    EXPECT_EQ(ids(whole.at("choices").at(0).at("token_ids")), ending("hello"));
    EXPECT_EQ(engine_->last_request.sampling.max_tokens, 200 - 2) << sampling;
  }
}

TEST_F(InferenceTest, TheSampledTokenIsAmongTheTopOnes) {
  serve_text("hi");
  const json::object whole = reply("/inference/v1/generate",
                                   R"({"token_ids":[72],"sampling_params":{"max_tokens":1,"logprobs":0}})");
  const json::value& token = whole.at("choices").at(0).at("logprobs").at("content").at(0);
  ASSERT_EQ(token.at("top_logprobs").as_array().size(), 1U);
  EXPECT_EQ(token.at("top_logprobs").at(0).at("token"), token.at("token"));
  EXPECT_EQ(token.at("top_logprobs").at(0).at("logprob"), token.at("logprob"));
}

TEST_F(InferenceTest, ErrorsNameTheField) {
  serve_text("hello");
  const auto param = [&](const std::string& body) {
    const http::Response response = post("/inference/v1/generate", body);
    EXPECT_EQ(response.status, 400) << response.body;
    return std::string(json::parse(response.body).at("error").at("param").as_string());
  };
  EXPECT_EQ(param("{}"), "token_ids");
  EXPECT_EQ(param(R"({"token_ids":[]})"), "token_ids");
  EXPECT_EQ(param(R"({"token_ids":[1],"features":{"x":1}})"), "features");
  EXPECT_EQ(param(R"({"token_ids":[1],"sampling_params":{"top_p":7}})"), "top_p");
  // Fields of completions, which sampling_params must not contain.
  EXPECT_EQ(param(R"({"token_ids":[1],"sampling_params":{"prompt":["a"]}})"), "sampling_params.prompt");
  EXPECT_EQ(param(R"({"token_ids":[1],"sampling_params":{"stream":true}})"), "sampling_params.stream");
}

// /render followed by /generate must give the same answer as one request.
TEST_F(InferenceTest, ARenderedChatGoesOn) {
  serve_text("hello");
  const json::object rendered =
      reply("/v1/chat/completions/render", kChat + R"(,"max_tokens":4,"temperature":0.5})");
  EXPECT_EQ(ids(rendered.at("token_ids")), bytes_of("user: Hi\nassistant: "));
  EXPECT_EQ(rendered.at("sampling_params").at("max_tokens"), 4);
  EXPECT_EQ(rendered.at("sampling_params").at("temperature"), 0.5);
  const json::object whole = reply("/inference/v1/generate", json::serialize(rendered));
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: Hi\nassistant: "));
  EXPECT_EQ(engine_->last_request.sampling.temperature, 0.5);
  EXPECT_EQ(ids(whole.at("choices").at(0).at("token_ids")), bytes_of("hell"));

  const http::Response list = post("/v1/completions/render", R"({"prompt":["a","bc"],"logprobs":2})");
  const json::value both = json::parse(list.body);
  ASSERT_EQ(both.as_array().size(), 2U);
  EXPECT_EQ(ids(both.at(1).at("token_ids")), bytes_of("bc"));
  EXPECT_EQ(both.at(0).at("sampling_params").at("logprobs"), 2);
}

TEST_F(InferenceTest, FillsInTheMiddle) {
  serve_text("mid");
  const http::Response refused = post("/v1/completions", kCompletion + R"(,"suffix":"end"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("suffix: is not supported by this model"));
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"suffix":""})").status, 200);

  tokenizer_ = byte_tokenizer({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  serve([](const Request&, int) { return Script{.tokens = ending("mid")}; },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.limits.vocab_size = kTestVocabulary + 3;
        });
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"suffix":"end"})").status, 200);
  std::vector<TokenId> prompt = {kTestVocabulary};
  for (const TokenId id : bytes_of("Once")) prompt.push_back(id);
  prompt.push_back(kTestVocabulary + 1);
  for (const TokenId id : bytes_of("end")) prompt.push_back(id);
  prompt.push_back(kTestVocabulary + 2);
  EXPECT_EQ(engine_->last_request.prompt, prompt);
}

// A prefill server forwards the prompt's tokens to the decode server.
TEST_F(ServeTest, AForwardedPromptIsNotReadAgain) {
  serve_text("x");
  const auto with = [](const std::string& ids) {
    return R"(,"kv_transfer_params":{"prompt_token_ids":)" + ids + "}}";
  };
  reply("/v1/chat/completions", kChat + with("[72,105]"));
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("Hi"));
  reply("/v1/completions", kCompletion + with("[72,105]"));
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("Hi"));
  reply("/v1/completions", kCompletion + R"(,"echo":true)" + with("[72,105]"));
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("Once"));
  reply("/v1/chat/completions", kChat + with("null"));
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: Hi\nassistant: "));
  for (const std::string bad : {"[]", "[-1]", "[258]", "[\"x\"]", "7"})
    EXPECT_EQ(post("/v1/chat/completions", kChat + with(bad)).status, 400) << bad;
}

}  // namespace
}  // namespace octavo
