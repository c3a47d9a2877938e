// Tests of tasks that return a vector or scores for each token, with the whole server and FakeEngine.
#include <gmock/gmock.h>

#include "serve/pooling_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A model that returns a vector for each token: (id, 0) if the id is below 'n', otherwise (0, id).
class TokenVectorsTest : public PoolingTest {
 protected:
  void serve_tokens(Task task, std::vector<std::string> labels = {}, const PoolingRules& rules = {}) {
    serve(
        [](const Request& r, int) {
          Script script;
          for (const TokenId id : r.prompt) {
            script.pooled.push_back(id < 'n' ? static_cast<float>(id) : 0);
            script.pooled.push_back(id < 'n' ? 0 : static_cast<float>(id));
            if (r.task == Task::embed) break;
          }
          return script;
        },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 20;
          options.pooling = rules;
          engine_->described = {.architecture = "Tokens",
                                .max_model_len = 20,
                                .tasks = {.default_task = task,
                                          .pooled_size = 2,
                                          .normalise = labels.empty(),
                                          .labels = labels,
                                          .score_activation = ScoreActivation::softmax}};
        });
  }
};

TEST_F(TokenVectorsTest, AreListsOfVectors) {
  for (const Task task : {Task::token_embed, Task::embed}) {
    serve_tokens(task);
    const std::string body = R"({"input":["az","b"],"task":"token_embed")";
    const json::array data = reply("/pooling", body + "}").at("data").as_array();
    ASSERT_EQ(data.size(), 2U);
    const json::array& first = data[0].at("data").as_array();
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(numbers(first[0]), (std::vector<double>{1, 0}));
    EXPECT_EQ(numbers(first[1]), (std::vector<double>{0, 1}));
    EXPECT_EQ(data[1].at("data").as_array().size(), 1U);
    EXPECT_EQ(engine_->last_request.task, Task::token_embed);
    const json::object raw = reply("/pooling", body + R"(,"normalize":false,"dimensions":1})");
    EXPECT_EQ(numbers(raw.at("data").at(0).at("data").at(0)), (std::vector<double>{97}));
    EXPECT_EQ(numbers(raw.at("data").at(0).at("data").at(1)), (std::vector<double>{0}));
    EXPECT_EQ(reply("/pooling", body + R"(,"encoding_format":"base64"})").at("data").at(1).at("data"),
              "AACAPwAAAAA=");  // the floats 1, 0
  }
}

TEST_F(TokenVectorsTest, ATaskIsOneOfTheModels) {
  serve_tokens(Task::token_embed);
  EXPECT_EQ(reply("/pooling", R"({"input":"ab"})").at("data").at(0).at("data").as_array().size(), 2U);
  EXPECT_THAT(
      refusal("/pooling", R"({"input":"ab","task":"embed"})"),
      StartsWith(R"(Unsupported task: 'embed' is not a task of Tokens models: task must be "token_embed")"));
  EXPECT_THAT(refusal("/pooling", R"({"input":"ab","task":"plugin"})"),
              StartsWith("No IOProcessor plugin installed."));
  EXPECT_THAT(refusal("/classify", R"({"input":"ab"})", 404), HasSubstr(R"(with the task "token_embed")"));
  serve_tokens(Task::embed);
  EXPECT_EQ(numbers(reply("/pooling", R"({"input":"ab"})").at("data").at(0).at("data")),
            (std::vector<double>{1, 0}));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a","task":"token_embed"})"), HasSubstr("task"));
  EXPECT_THAT(refusal("/pooling", R"({"input":"a","task":"classify"})"), HasSubstr("task"));
}

// A reward model that scores labels for each token. With step_tag, only scores at ends of steps return.
TEST_F(TokenVectorsTest, OfStepsAreProbabilitiesOfLabels) {
  const std::vector<std::string> labels{"bad", "good"};
  serve_tokens(Task::token_classify, labels);
  const auto tokens = [&](const std::string& fields) {
    return reply("/pooling", R"({"input":["ax\u0001b\u0001","c"])" + fields + "}").at("data").as_array();
  };
  const json::array all = tokens(R"(,"task":"token_classify")");
  ASSERT_EQ(all.at(0).at("data").as_array().size(), 5U);
  EXPECT_NEAR(numbers(all[0].at("data").at(0))[0], 1, 1e-6);
  EXPECT_NEAR(numbers(all[0].at("data").at(2))[0], sigmoid(1), 1e-6);
  EXPECT_THAT(refusal("/score", R"({"text_1":"a","text_2":"b"})", 404), HasSubstr("do not score texts"));

  serve_tokens(Task::token_classify, labels, {.step_tag = 1});
  const json::array steps = tokens("");
  ASSERT_EQ(steps.at(0).at("data").as_array().size(), 2U);
  EXPECT_NEAR(numbers(steps[0].at("data").at(1))[0], sigmoid(1), 1e-6);
  EXPECT_TRUE(steps.at(1).at("data").as_array().empty());

  serve_tokens(Task::token_classify, labels, {.step_tag = 'x', .returned = {1, 0, 1}});
  const json::array chosen = tokens(R"(,"use_activation":false)");
  EXPECT_EQ(numbers(chosen[0].at("data").at(0)), (std::vector<double>{'x', 0, 'x'}));

  serve_tokens(Task::token_embed);
  EXPECT_THAT(refusal("/pooling", R"({"input":"a","task":"token_classify"})"),
              StartsWith("Unsupported task: 'token_classify'"));
}

// A model with two heads that return a weight (id - 98) and a vector (id, position) for each token.
TEST_F(PoolingTest, HeadsOfTokensLeaveOutWhatBeginsAndEndsAText) {
  serve(
      [](const Request& r, int) {
        Script script;
        if (r.task == Task::embed) script.pooled = {0, 2};
        for (std::size_t i = 0; i < r.prompt.size(); ++i) {
          if (r.task == Task::token_classify) script.pooled.push_back(static_cast<float>(r.prompt[i] - 98));
          if (r.task == Task::token_embed)
            script.pooled.insert(script.pooled.end(),
                                 {static_cast<float>(r.prompt[i]), static_cast<float>(i), 0});
        }
        return script;
      },
      [&](ServeOptions& options, http::ServerOptions&) {
        options.rules.max_model_len = 20;
        options.pooling = {.task = Task::token_classify, .dimensions = 2};
        engine_->described = {
            .architecture = "M3",
            .max_model_len = 20,
            .tasks = {.default_task = Task::embed,
                      .pooled_size = 2,
                      .normalise = true,
                      .token_heads = {{.task = Task::token_embed, .size = 3, .left_out_first = '<'},
                                      {.task = Task::token_classify,
                                       .size = 1,
                                       .activation = ScoreActivation::relu,
                                       .left_out_first = '<',
                                       .left_out_last = '>'}}}};
      });
  const auto data = [&](const std::string& fields) {
    return reply("/pooling", R"({"input":["<abc>","<","d<>e"])" + fields + "}").at("data").as_array();
  };
  for (const char* task : {"", R"(,"task":"token_classify")"}) {
    const json::array weights = data(task);
    EXPECT_EQ(numbers(weights.at(0).at("data")), (std::vector<double>{0, 0, 1}));
    EXPECT_TRUE(weights.at(1).at("data").as_array().empty());
    EXPECT_EQ(numbers(weights.at(2).at("data")), (std::vector<double>{2, 0, 0, 3}));
  }
  EXPECT_EQ(numbers(data(R"(,"use_activation":false)").at(0).at("data")), (std::vector<double>{-1, 0, 1}));
  const json::array vectors = data(R"(,"task":"token_embed")");
  ASSERT_EQ(vectors.at(0).at("data").as_array().size(), 4U);
  EXPECT_EQ(numbers(vectors.at(0).at("data").at(3)), (std::vector<double>{'>', 4}));
  EXPECT_EQ(numbers(data(R"(,"task":"embed")").at(0).at("data")), (std::vector<double>{0, 1}));
  EXPECT_EQ(numbers(reply("/v1/embeddings", R"({"input":"ab"})").at("data").at(0).at("embedding")),
            (std::vector<double>{0, 1}));
  EXPECT_THAT(refusal("/pooling", R"({"input":"a","task":"classify"})"), HasSubstr("of M3 models"));
  EXPECT_THAT(refusal("/pooling", R"({"input":"a","task":"embed&token_classify"})"), HasSubstr("task"));
  EXPECT_THAT(refusal("/pooling", R"({"input":"a","task":"token_classify","dimensions":2})"),
              HasSubstr("at most 1"));
}

// Each token of the query is compared with the most similar token of the document.
TEST_F(TokenVectorsTest, TextsAreAlikeAsTheirTokensAre) {
  serve_tokens(Task::token_embed);
  const json::array results =
      reply("/rerank", R"({"query":"azb","documents":["zz","bx","c"]})").at("results").as_array();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].at("index"), 1);
  EXPECT_NEAR(results[0].at("relevance_score").to_number<double>(), 3, 1e-6);
  EXPECT_EQ(results[1].at("index"), 2);
  EXPECT_NEAR(results[1].at("relevance_score").to_number<double>(), 2, 1e-6);
  EXPECT_NEAR(results[2].at("relevance_score").to_number<double>(), 1, 1e-6);
}

// vLLM's clients read `detail` of a route that the model does not have.
TEST_F(TokenVectorsTest, RoutesThatTheModelLacksAreNotFound) {
  serve_tokens(Task::embed);
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}]})";
  for (const auto& [path, body] : {std::pair<std::string, std::string>("/v1/chat/completions", chat),
                                   {"/v1/completions", R"({"prompt":"a"})"},
                                   {"/classify", R"({"input":"a"})"},
                                   {"/nothing", "{}"}}) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, 404) << path;
    const json::value error = json::parse(response.body);
    EXPECT_EQ(error.at("detail"), "Not Found") << path;
    EXPECT_EQ(error.at("error").at("type"), "NotFoundError") << path;
  }
  EXPECT_EQ(engine_->submitted, 0);
}

TEST_F(TokenVectorsTest, AClassifierOfTextsAlsoScoresTokens) {
  serve_tokens(Task::classify, {"low", "high"});
  const json::array rows =
      reply("/pooling", R"({"input":"az","task":"token_classify"})").at("data").at(0).at("data").as_array();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(numbers(rows[0])[0], 1, 1e-6);
  EXPECT_NEAR(numbers(rows[1])[1], 1, 1e-6);
  EXPECT_EQ(engine_->last_request.task, Task::token_classify);
  EXPECT_THAT(refusal("/pooling", R"({"input":"az","task":"token_embed"})"),
              StartsWith("Unsupported task: 'token_embed'"));
}

TEST_F(TokenVectorsTest, TheServersTaskDecidesWhatEmbeddingsAre) {
  serve_tokens(Task::embed, {}, {.task = Task::token_embed});
  const json::array rows =
      reply("/v1/embeddings", R"({"input":["az","b"]})").at("data").at(0).at("embedding").as_array();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(numbers(rows[1]), (std::vector<double>{0, 1}));
  // A query's tokens find their best match in a document: "a" is like "b", "z" is like "y".
  const json::value scores = reply("/score", R"({"text_1":"az","text_2":["by","bb"]})").at("data");
  EXPECT_NEAR(scores.at(0).at("score").to_number<double>(), 2, 1e-6);
  EXPECT_NEAR(scores.at(1).at("score").to_number<double>(), 1, 1e-6);
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["a"],"input_type":"classification"})", 404),
              HasSubstr("do not make vectors"));
}

TEST_F(TokenVectorsTest, LateChunksAreMeansOfTheirTokens) {
  serve_tokens(Task::embed, {}, {.task = Task::token_embed});
  const auto chunks = [&](const std::string& path, const std::string& fields) {
    return reply(path, R"({"input":["ac\u00e4z"],"late_chunking_params":{"chunk_size":2})" + fields + "}")
        .at("data")
        .at(0);
  };
  // The tokens are the bytes 97 99 195 164 122; one character has two bytes.
  const json::value raw = chunks("/v1/embeddings", R"(,"use_activation":false)");
  ASSERT_EQ(raw.at("embedding").as_array().size(), 3U);
  EXPECT_EQ(numbers(raw.at("embedding").at(0)), (std::vector<double>{98, 0}));
  EXPECT_EQ(numbers(raw.at("embedding").at(1)), (std::vector<double>{0, 179.5}));
  EXPECT_EQ(numbers(raw.at("embedding").at(2)), (std::vector<double>{0, 122}));
  EXPECT_EQ(raw.at("late_chunking"), json::parse(R"({"chunk_size":2,"input_tokens":5,"chunks":[
      {"token_range":[0,2],"char_range":[0,2]}, {"token_range":[2,4],"char_range":[2,3]},
      {"token_range":[4,5],"char_range":[3,4]}],"strategy":"fixed_tokens"})"));
  EXPECT_EQ(numbers(chunks("/pooling", "").at("data").at(0)), (std::vector<double>{1, 0}));
  const json::object whole =
      reply("/v1/embeddings", R"({"input":"az","late_chunking_params":{"chunk_size":9223372036854775807}})");
  EXPECT_EQ(whole.at("data").at(0).at("embedding").as_array().size(), 1U);
}

TEST_F(TokenVectorsTest, LateChunksNeedWholePlainTexts) {
  serve_tokens(Task::embed, {}, {.task = Task::token_embed});
  const std::string chunked = R"("late_chunking_params":{"chunk_size":2})";
  for (const std::string& fields : {R"("input":[97,98],)" + chunked, R"("input":"",)" + chunked,
                                    R"("input":"ab","truncate_prompt_tokens":1,)" + chunked,
                                    R"("input":"ab","task":"embed",)" + chunked}) {
    EXPECT_THAT(refusal("/pooling", "{" + fields + "}"), HasSubstr("late_chunking_params")) << fields;
  }
  for (const char* value : {R"({"chunk_size":0})", R"({"chunk_size":18446744073709551616})", "{}", "7",
                            R"({"chunk_size":1,"overlap":1})"})
    EXPECT_THAT(refusal("/pooling", fmt::format(R"({{"input":"ab","late_chunking_params":{}}})", value)),
                HasSubstr("late_chunking_params"));
  EXPECT_EQ(engine_->submitted, 0);
}

}  // namespace
}  // namespace octavo
