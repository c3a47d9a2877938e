// Tests /generative_scoring and prompt_logprob_token_ids. The engine gives each listed token the
// log-probability -id / 64.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "base/base64.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

class GenerativeScoringTest : public ServeTest {
 protected:
  void SetUp() override {
    serve([this](const Request& request, int) {
      const std::lock_guard lock(mutex_);
      prompts_.push_back(request.prompt);
      return Script{.tokens = bytes_of("y")};
    });
  }
  std::string refusal(const std::string& path, const std::string& body) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, 400) << response.body;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  }

  std::mutex mutex_;
  std::vector<std::vector<TokenId>> prompts_;
};

TEST_F(GenerativeScoringTest, TheScoreIsTheShareOfTheFirstLabel) {
  const json::object whole =
      reply("/generative_scoring", R"({"model":"demo","query":"Is it? ","items":["no","yes!"],)"
                                   R"("label_token_ids":[64,0,64],"request_id":"r"})");
  EXPECT_EQ(whole.at("id"), "generative-scoring-r");
  EXPECT_EQ(whole.at("object"), "list");
  EXPECT_EQ(whole.at("model"), "demo");
  ASSERT_EQ(whole.at("data").as_array().size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const json::value& item = whole.at("data").at(static_cast<std::size_t>(i));
    EXPECT_EQ(item.at("index"), i);
    EXPECT_EQ(item.at("object"), "score");
    EXPECT_NEAR(item.at("score").as_double(), std::exp(-1) / (std::exp(-1) + 1), 1e-6);
  }
  EXPECT_EQ(whole.at("usage").at("prompt_tokens"), 9 + 11);
  EXPECT_EQ(whole.at("usage").at("completion_tokens"), 2);
  EXPECT_THAT(prompts_, testing::UnorderedElementsAre(bytes_of("Is it? no"), bytes_of("Is it? yes!")));
}

TEST_F(GenerativeScoringTest, WithoutSoftmaxTheScoreIsTheProbability) {
  const json::object whole =
      reply("/generative_scoring", R"({"query":[72,105],"items":[[33]],"label_token_ids":[32,0],)"
                                   R"("apply_softmax":false,"item_first":true,"temperature":2})");
  EXPECT_NEAR(whole.at("data").at(0).at("score").as_double(), std::exp(-0.5), 1e-6);
  EXPECT_THAT(prompts_, testing::ElementsAre(bytes_of("!Hi")));
  EXPECT_EQ(engine_->last_request.sampling.temperature, 0) << "sampling fields have no effect";
}

TEST_F(GenerativeScoringTest, ErrorsNameTheField) {
  const auto param = [&](const std::string& body) {
    const http::Response response = post("/generative_scoring", body);
    EXPECT_EQ(response.status, 400) << response.body;
    return std::string(json::parse(response.body).at("error").at("param").as_string());
  };
  EXPECT_EQ(param(R"({"items":["a"],"label_token_ids":[1]})"), "query");
  EXPECT_EQ(param(R"({"query":"a","label_token_ids":[1]})"), "items");
  EXPECT_EQ(param(R"({"query":"a","items":[],"label_token_ids":[1]})"), "items");
  EXPECT_EQ(param(R"({"query":"a","items":"b","label_token_ids":[1]})"), "items");
  EXPECT_EQ(param(R"({"query":"a","items":[1,2],"label_token_ids":[1]})"), "items");
  EXPECT_EQ(param(R"({"query":"a","items":["b",[1]],"label_token_ids":[1]})"), "items");
  EXPECT_EQ(param(R"({"query":"a","items":["b"]})"), "label_token_ids");
  EXPECT_EQ(param(R"({"query":"a","items":["b"],"label_token_ids":[]})"), "label_token_ids");
  EXPECT_EQ(param(R"({"query":"a","items":["b"],"label_token_ids":[99999]})"), "label_token_ids");
  EXPECT_EQ(param(R"({"query":[99999],"items":["b"],"label_token_ids":[1]})"), "query");
  EXPECT_EQ(
      param(fmt::format(R"({{"query":"a","items":["{}"],"label_token_ids":[1]}})", std::string(300, 'x'))),
      "items");
  EXPECT_EQ(
      post("/generative_scoring", R"({"model":"no","query":"a","items":["b"],"label_token_ids":[1]})").status,
      404);
}

// 1000 prompts, which each contain the query's 150 tokens, need more memory than one client may use.
TEST_F(ServeTest, TheTotalOfScoredPromptsIsLimitedBeforeItIsAllocated) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("y")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.admission.request_bytes_max = 1 << 20; });
  std::string items;
  for (int i = 0; i < 1000; ++i) items += R"("b",)";
  items.pop_back();
  const http::Response refused = post(
      "/generative_scoring",
      fmt::format(R"({{"query":"{}","items":[{}],"label_token_ids":[1]}})", std::string(150, 'q'), items));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("a client may use at most 0 MiB"));
}

// Reads an array of vLLM's prompt_token_id_logprobs, as numpy.load() does.
struct Scores {
  std::string header;
  std::vector<float> values;
};
Scores decoded(const json::value& base64) {
  const std::string file = decode_base64(std::string_view(base64.as_string())).value();
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t size = static_cast<unsigned char>(file[8]) + 256U * static_cast<unsigned char>(file[9]);
  EXPECT_EQ((10 + size) % 64, 0U);
  EXPECT_EQ(file[10 + size - 1], '\n');
  Scores scores{file.substr(10, size), std::vector<float>((file.size() - 10 - size) / 4)};
  std::memcpy(scores.values.data(), file.data() + 10 + size, scores.values.size() * 4);
  return scores;
}

TEST_F(GenerativeScoringTest, PromptScoresAreAnArrayWithARowForEachPosition) {
  const float padding = -std::numeric_limits<float>::infinity();
  const json::object whole =
      reply("/inference/v1/generate", R"({"token_ids":[72,105,33],"sampling_params":{"max_tokens":1,)"
                                      R"("prompt_logprob_token_ids":[[64,-1],[32]]}})");
  const Scores scores = decoded(whole.at("prompt_token_id_logprobs"));
  EXPECT_THAT(scores.header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"));
  EXPECT_THAT(scores.values, testing::ElementsAre(-1.0F, padding, -0.5F, padding));

  const json::object later =
      reply("/inference/v1/generate", R"({"token_ids":[72,105,33],"sampling_params":{"max_tokens":1,)"
                                      R"("prompt_logprob_start":1,"prompt_logprob_token_ids":[[16]]}})");
  EXPECT_THAT(decoded(later.at("prompt_token_id_logprobs")).values, testing::ElementsAre(-0.25F));
  const json::object both =
      reply("/inference/v1/generate", R"({"token_ids":[72,105,33],"sampling_params":{"max_tokens":1,)"
                                      R"("prompt_logprobs":0,"prompt_logprob_start":1,)"
                                      R"("prompt_logprob_token_ids":[[16]]}})");
  EXPECT_THAT(decoded(both.at("prompt_token_id_logprobs")).values, testing::ElementsAre(-0.25F));
  const json::array& positions = both.at("prompt_logprobs").as_array();
  ASSERT_EQ(positions.size(), 3U);
  EXPECT_TRUE(positions[0].is_null());
  EXPECT_EQ(positions[1].as_object().size(), 1U);
  EXPECT_EQ(positions[2].as_object().size(), 1U) << "only the token of the prompt";
  EXPECT_TRUE(positions[2].as_object().contains("33"));
  const json::object none =
      reply("/inference/v1/generate", R"({"token_ids":[72],"sampling_params":{"max_tokens":1}})");
  EXPECT_TRUE(none.at("prompt_token_id_logprobs").is_null());
  const json::object completion =
      reply("/v1/completions", R"({"prompt":[72,105],"max_tokens":1,"prompt_logprob_token_ids":[[64]]})");
  EXPECT_THAT(decoded(completion.at("choices").at(0).at("prompt_token_id_logprobs")).values,
              testing::ElementsAre(-1.0F));
}

TEST_F(GenerativeScoringTest, ErrorsOfPromptScoresNameTheLimit) {
  const auto message = [&](const std::string& fields) {
    return refusal("/v1/completions", R"({"prompt":[72,105,33],"max_tokens":1,)" + fields + "}");
  };
  EXPECT_THAT(message(R"("prompt_logprob_token_ids":[])"), HasSubstr("must have 1 to 199 rows"));
  EXPECT_THAT(message(R"("prompt_logprob_token_ids":[[],[]])"), HasSubstr("each row must have 1 to 20"));
  EXPECT_THAT(message(R"("prompt_logprob_token_ids":[1,2])"), HasSubstr("must be a list of lists"));
  EXPECT_THAT(message(R"("prompt_logprob_token_ids":[[1],[99999]])"),
              HasSubstr("prompt_logprob_token_ids[1]"));
  EXPECT_THAT(message(R"("prompt_logprob_token_ids":[[1],[-2]])"), HasSubstr("prompt_logprob_token_ids[1]"));
  EXPECT_THAT(message(R"("prompt_logprob_start":1)"), HasSubstr("needs prompt_logprob_token_ids"));
  EXPECT_THAT(message(R"("prompt_logprobs":1,"prompt_logprob_token_ids":[[1],[1]])"),
              HasSubstr("prompt_logprobs: must be 0 with prompt_logprob_token_ids"));
  EXPECT_THAT(message(R"("echo":true,"prompt_logprob_token_ids":[[1],[1]])"),
              HasSubstr("cannot be combined with echo"));
  EXPECT_THAT(message(R"("stream":true,"prompt_logprob_token_ids":[[1],[1]])"),
              HasSubstr("not available with stream"));
}

}  // namespace
}  // namespace octavo
