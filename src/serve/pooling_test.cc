// Tests the routes of pooling models with the whole server and FakeEngine.
#include <gmock/gmock.h>

#include <cmath>

#include "serve/pooling_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

TEST_F(PoolingTest, EmbeddingsComeInTheOrderOfTheInput) {
  serve_embedder();
  const json::object r = reply("/v1/embeddings", R"({"model":"demo","input":["\u0003xx","a"]})");
  EXPECT_EQ(r.at("object"), "list");
  EXPECT_EQ(r.at("model"), "demo");
  EXPECT_TRUE(std::string_view(r.at("id").as_string()).starts_with("embd-"));
  EXPECT_EQ(r.at("usage").at("prompt_tokens"), 4);
  EXPECT_EQ(r.at("usage").at("total_tokens"), 4);
  const json::array& data = r.at("data").as_array();
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[0].at("index"), 0);
  EXPECT_EQ(data[0].at("object"), "embedding");
  const double root = std::sqrt(0.5);
  EXPECT_THAT(numbers(data[0].at("embedding")),
              testing::ElementsAre(testing::DoubleNear(root, 1e-7), testing::DoubleNear(root, 1e-7), 0));
  EXPECT_EQ(data[1].at("index"), 1);
  EXPECT_NEAR(numbers(data[1].at("embedding"))[1], 97 / std::sqrt(97.0 * 97 + 1), 1e-6);
}

TEST_F(PoolingTest, TheServersLoadCountsThem) {
  serve([](const Request&, int) { return Script{.hang = true}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 20;
          engine_->described = {.max_model_len = 20,
                                .tasks = {.default_task = Task::embed, .pooled_size = 1}};
        });
  const auto load = [&](int count) {
    return eventually(
        [&] { return client().get("/load")->body == fmt::format(R"({{"server_load":{}}})", count); });
  };
  http::Client c = client();
  const std::string body = R"({"input":["a","b"]})";
  ASSERT_TRUE(c.send_raw(fmt::format(
      "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)));
  EXPECT_TRUE(load(1));
  c.close();
  EXPECT_TRUE(load(0));
}

TEST_F(PoolingTest, InputMayBeIdsAndVectorsMayBeShort) {
  serve_embedder();
  const auto vector = [&](const std::string& fields) {
    return numbers(reply("/v1/embeddings", "{" + fields + "}").at("data").at(0).at("embedding"));
  };
  EXPECT_EQ(vector(R"("input":[4,4,4],"normalize":false)"), (std::vector<double>{3, 4, 0}));
  EXPECT_EQ(vector(R"("input":[[4,4,4]],"use_activation":false)"), (std::vector<double>{3, 4, 0}));
  EXPECT_EQ(vector(R"("input":[4,4,4],"dimensions":1)"), (std::vector<double>{1}));
  EXPECT_EQ(vector(R"("input":"ab0123456789012345678901","truncate_prompt_tokens":5,"normalize":false)"),
            (std::vector<double>{5, 97, 0}));
  EXPECT_EQ(vector(R"("input":"ab0123456789012345678901","truncate_prompt_tokens":-1,"normalize":false)")[0],
            20);
}

TEST_F(PoolingTest, Base64IsLittleEndianFloats) {
  serve_embedder(false);
  const json::object r =
      reply("/v1/embeddings", R"({"input":[4,4,4],"encoding_format":"base64","priority":3})");
  // the floats 3, 4, 0
  EXPECT_EQ(r.at("data").at(0).at("embedding"), "AABAQAAAgEAAAAAA");
  EXPECT_EQ(engine_->last_request.priority, 3);
  EXPECT_EQ(engine_->last_request.task, Task::embed);
}

TEST_F(PoolingTest, BadInputNamesTheField) {
  serve_embedder();
  EXPECT_THAT(refusal("/v1/embeddings", "{}"), HasSubstr("input: is missing"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":[]})"), HasSubstr("input: must not be empty"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":["a",""]})"), HasSubstr("input: a text is empty"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"012345678901234567890"})"),
              HasSubstr("a text has 21 tokens, but the model accepts at most 20"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a","dimensions":4})"), HasSubstr("at most 3"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a","dimensions":0})"), HasSubstr("dimensions"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a","encoding_format":"hex"})"),
              HasSubstr("encoding_format"));
  EXPECT_EQ(refusal("/v1/embeddings", R"({"input":"a","truncate_prompt_tokens":21})"),
            "truncate_prompt_tokens value is greater than max_model_len. Please request a smaller truncation "
            "size.");
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":[1,-1]})"),
              HasSubstr("token id -1 is out of vocabulary"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":["a",[1]]})"), HasSubstr("input"));
  EXPECT_THAT(refusal("/classify", R"({"input":"a"})", 404), HasSubstr("Embedder models do not classify"));
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a","model":"other"})").status, 404);
  std::string many = R"({"input":["a")";
  for (int i = 0; i < 2048; ++i) many += R"(,"a")";
  EXPECT_THAT(refusal("/v1/embeddings", many + "]}"), HasSubstr("at most 2048"));
  EXPECT_EQ(engine_->submitted, 0);
}

TEST_F(PoolingTest, ModelsThatGenerateMakeNoVectors) {
  serve_text("x");
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a"})", 404), HasSubstr("do not make vectors"));
  EXPECT_THAT(refusal("/pooling", R"({"input":"a"})", 404), HasSubstr("do not make vectors"));
  EXPECT_THAT(refusal("/rerank", R"({"query":"a","documents":["b"]})", 404), HasSubstr("do not score texts"));
}

TEST_F(PoolingTest, TextsOfEmbeddersAreAlikeAsTheirVectors) {
  serve_embedder();
  const json::object r =
      reply("/v1/score", R"({"text_1":"\u0003xx","text_2":["\u0003yy","\u0001","\u0003zz"]})");
  const json::array& data = r.at("data").as_array();
  ASSERT_EQ(data.size(), 3U);
  EXPECT_NEAR(data[0].at("score").to_number<double>(), 1, 1e-6);
  EXPECT_NEAR(data[1].at("score").to_number<double>(), 1, 1e-6);
  EXPECT_EQ(data[2].at("index"), 2);
  EXPECT_EQ(data[2].at("object"), "score");
  EXPECT_THAT(refusal("/score", R"({"text_1":["a","b"],"text_2":["a","b","c"]})"), HasSubstr("text_1"));
}

TEST_F(PoolingTest, RerankersReadPairs) {
  serve_reranker();
  const std::string body = R"({"query":"quer","documents":["ab","abcdef",{"text":"abcd"}])";
  for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
    const json::object r = reply(path, body + "}");
    const json::array& results = r.at("results").as_array();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[0].at("index"), 1);
    EXPECT_EQ(results[0].at("document").at("text"), "abcdef");
    EXPECT_NEAR(results[0].at("relevance_score").to_number<double>(), 0.5, 1e-7);
    EXPECT_EQ(results[1].at("index"), 2);
    EXPECT_EQ(results[2].at("index"), 0);
    EXPECT_NEAR(results[2].at("relevance_score").to_number<double>(), sigmoid(-4), 1e-7);
    EXPECT_EQ(r.at("usage").at("total_tokens"), 24);
  }
  const json::object first = reply("/rerank", body + R"(,"top_n":1,"return_documents":false})");
  ASSERT_EQ(first.at("results").as_array().size(), 1U);
  EXPECT_FALSE(first.at("results").at(0).as_object().contains("document"));

  const json::object scores =
      reply("/score", R"({"queries":["a","ab"],"documents":["b","c"],"use_activation":false})");
  EXPECT_EQ(scores.at("data").at(0).at("score").to_number<double>(), -8);
  EXPECT_EQ(scores.at("data").at(1).at("score").to_number<double>(), -7);
  EXPECT_THAT(refusal("/rerank", R"({"documents":["b"]})"), HasSubstr("query: is missing"));
  EXPECT_THAT(refusal("/rerank", R"({"query":"a","documents":[7]})"), HasSubstr("documents"));
}

TEST_F(PoolingTest, AnEmptyTextOfAPairIsNamed) {
  serve_embedder();
  const std::pair<const char*, const char*> bodies[] = {
      {R"("text_1":"","text_2":"a")", "text_1: a text"},
      {R"("queries":["a",""],"documents":["a","b"])", "queries[1]: a text"},
      {R"("text_1":"a","text_2":["b",""])", "text_2[1]: a text"}};
  for (const auto& [fields, message] : bodies)
    EXPECT_THAT(refusal("/score", std::string("{") + fields + "}"), HasSubstr(message));
  EXPECT_THAT(refusal("/rerank", R"({"query":"","documents":["a"]})"), HasSubstr("query: a text"));
}

TEST_F(PoolingTest, ClassifyNamesTheLabel) {
  serve([](const Request&, int) { return Script{.pooled = {1, 3, 2}}; },
        [&](ServeOptions&, http::ServerOptions&) {
          engine_->described = {.max_model_len = 20,
                                .tasks = {.default_task = Task::classify,
                                          .pooled_size = 3,
                                          .labels = {"no", "yes \"or\" so", "perhaps"},
                                          .score_activation = ScoreActivation::softmax}};
        });
  const json::object r = reply("/classify", R"({"input":"a"})");
  const json::value& answer = r.at("data").at(0);
  EXPECT_EQ(answer.at("label"), "yes \"or\" so");
  EXPECT_EQ(answer.at("num_classes"), 3);
  EXPECT_NEAR(numbers(answer.at("probs"))[1], 0.66524, 1e-5);
  const http::Response unscored = post("/rerank", R"({"query":"a","documents":["b"]})");
  EXPECT_EQ(unscored.status, 404);
  EXPECT_THAT(unscored.body, HasSubstr("one label"));
}

TEST_F(PoolingTest, CoheresVectorsComeInSeveralFormats) {
  serve_embedder(false);
  const json::object r =
      reply("/v2/embed", R"({"model":"demo","texts":["\u0003xx","a"],"input_type":"search_document",)"
                         R"("embedding_types":["float","base64","ubinary","binary"]})");
  EXPECT_EQ(r.at("response_type"), "embeddings_by_type");
  EXPECT_EQ(r.at("texts").at(1), "a");
  EXPECT_EQ(r.at("meta").at("billed_units").at("input_tokens"), 4);
  const json::value& embeddings = r.at("embeddings");
  EXPECT_EQ(numbers(embeddings.at("float").at(0)), (std::vector<double>{3, 3, 0}));
  EXPECT_EQ(embeddings.at("base64").at(0), "AABAQAAAQEAAAAAA");
  EXPECT_EQ(numbers(embeddings.at("ubinary").at(0)), (std::vector<double>{192}));
  EXPECT_EQ(numbers(embeddings.at("binary").at(1)), (std::vector<double>{64}));
  const json::object cut =
      reply("/v2/embed", R"({"inputs":[{"content":[{"type":"text","text":"ab0123456789012345678901"}]}]})");
  EXPECT_EQ(numbers(cut.at("embeddings").at("float").at(0))[0], 20);
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["a"],"embedding_types":["int8"]})"),
              HasSubstr("embedding_types"));
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["a"],"output_dimension":4})"), HasSubstr("at most 3"));
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["012345678901234567890"],"truncate":"NONE"})"),
              HasSubstr("texts: a text has 21 tokens"));
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["a"],"truncate":"MIDDLE"})"), HasSubstr("truncate"));
  EXPECT_THAT(refusal("/v2/embed", R"({"images":["data:image/png;base64,TWFu"]})"),
              HasSubstr("images[0].content[0].image_url"));
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["a"],"inputs":[]})"), HasSubstr("only one of"));
}

TEST_F(PoolingTest, AConversationIsOneText) {
  serve_embedder();
  const auto vector = [&](const std::string& path, const std::string& fields) {
    const json::object r =
        reply(path, R"({"normalize":false,"messages":[{"role":"u","content":"hi"}])" + fields + "}");
    const json::object& item = r.at("data").at(0).as_object();
    return numbers(item.at(path == "/pooling" ? "data" : "embedding"));
  };
  // The prompt is "u: hi" and a line break, without or with "assistant: ".
  EXPECT_EQ(vector("/v1/embeddings", ""), (std::vector<double>{6, 'u', 0}));
  EXPECT_EQ(vector("/pooling", ""), (std::vector<double>{6, 'u', 0}));
  EXPECT_EQ(vector("/v1/embeddings", R"(,"add_generation_prompt":true)"), (std::vector<double>{17, 'u', 0}));
  EXPECT_EQ(vector("/v1/embeddings", R"(,"truncate_prompt_tokens":4)"), (std::vector<double>{4, 'u', 0}));
  const auto refused = [&](const std::string& fields) {
    return refusal("/v1/embeddings", "{" + fields + "}");
  };
  EXPECT_THAT(refused(R"("messages":[{"role":"u","content":"hi"}],"input":"a")"),
              HasSubstr("messages: cannot be"));
  EXPECT_THAT(refused(R"("messages":[{"role":"u","content":"12345678901234567890"}])"),
              HasSubstr("messages: a text has 24 tokens, but the model accepts at most 20"));
  EXPECT_THAT(refused(R"("messages":[{"role":"u","content":[{"type":"image_url","image_url":"data:,x"}]}])"),
              HasSubstr("messages[0].content[0].image_url"));
  EXPECT_THAT(refused(R"("messages":[{"role":"u","content":"hi"}],"chat_template":"x")"),
              HasSubstr("chat_template"));
}

// The model reads at most 20 tokens and returns the vector (1, number of tokens).
TEST_F(PoolingTest, LongTextsAreReadInChunks) {
  serve([](const Request& r, int) { return Script{.pooled = {1, static_cast<float>(r.prompt.size())}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 20;
          options.pooling.longest = 50;
          engine_->described = {.architecture = "E",
                                .max_model_len = 20,
                                .tasks = {.default_task = Task::embed, .pooled_size = 2, .normalise = true}};
        });
  const std::string long_text(50, 'x');
  const json::object r =
      reply("/v1/embeddings", fmt::format(R"({{"input":["{}","ab"],"normalize":false}})", long_text));
  EXPECT_EQ(r.at("usage").at("prompt_tokens"), 52);
  ASSERT_EQ(r.at("data").as_array().size(), 2U);
  // The text has chunks of 20, 20 and 10 tokens.
  EXPECT_EQ(numbers(r.at("data").at(0).at("embedding")), (std::vector<double>{1, 18}));
  EXPECT_EQ(numbers(r.at("data").at(1).at("embedding")), (std::vector<double>{1, 2}));
  EXPECT_EQ(engine_->submitted, 4);
  const auto unit = numbers(reply("/v1/embeddings", fmt::format(R"({{"input":"{}"}})", long_text))
                                .at("data")
                                .at(0)
                                .at("embedding"));
  EXPECT_NEAR(unit[0] * unit[0] + unit[1] * unit[1], 1, 1e-6);
  const json::object typed = reply("/v2/embed", fmt::format(R"({{"texts":["{}"]}})", long_text));
  EXPECT_NEAR(numbers(typed.at("embeddings").at("float").at(0))[0], unit[0], 1e-6);
  const auto refused = [&](const std::string& path, const std::string& text, const std::string& more) {
    return refusal(path, fmt::format(R"({{"input":"{}"{}}})", text, more));
  };
  EXPECT_THAT(refused("/v1/embeddings", long_text + "x", ""),
              HasSubstr("a text has 51 tokens, but the model accepts at most 50"));
  EXPECT_THAT(refused("/pooling", long_text, R"(,"task":"token_embed")"),
              HasSubstr("the model accepts at most 20"));
  EXPECT_THAT(refused("/v1/embeddings", "a", R"(,"truncate_prompt_tokens":51)"),
              testing::StartsWith("truncate_prompt_tokens value is greater than max_model_len."));
}

TEST_F(PoolingTest, AServerMaySayWhatARequestLeavesOut) {
  serve([](const Request&, int) { return Script{.pooled = {3, 4}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.pooling = {.activated = false, .dimensions = 1};
          engine_->described = {.max_model_len = 20,
                                .tasks = {.default_task = Task::embed, .pooled_size = 2, .normalise = true}};
        });
  const auto vector = [&](const std::string& fields) {
    return numbers(
        reply("/v1/embeddings", R"({"input":"a")" + fields + "}").at("data").at(0).at("embedding"));
  };
  EXPECT_EQ(vector(""), (std::vector<double>{3}));
  EXPECT_EQ(vector(R"(,"dimensions":2)"), (std::vector<double>{3, 4}));
  EXPECT_EQ(vector(R"(,"normalize":true)"), (std::vector<double>{1}));
  serve([](const Request&, int) { return Script{.pooled = {3}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.pooling = {.score_mean = 1, .score_sigma = 4};
          engine_->described = {.max_model_len = 20,
                                .tasks = {.default_task = Task::classify,
                                          .pooled_size = 1,
                                          .labels = {"relevant"},
                                          .score_activation = ScoreActivation::sigmoid}};
        });
  const auto score = [&](const std::string& more) {
    const json::object r = reply("/score", R"({"text_1":"a","text_2":"b")" + more + "}");
    return r.at("data").at(0).at("score").to_number<double>();
  };
  EXPECT_NEAR(score(""), sigmoid(0.5), 1e-7);
  EXPECT_EQ(score(R"(,"use_activation":false)"), 0.5);
}

TEST_F(PoolingTest, PairsGoThroughATemplateThatIsGiven) {
  std::string read;
  serve_pairs(read);
  reply("/score", R"({"text_1":"who \"I\"?","text_2":"you"})");
  EXPECT_EQ(read, "query: who \"I\"?\ndocument: you\n");
}

TEST_F(PoolingTest, JinasNamesAreRead) {
  serve_embedder();
  const json::object r =
      reply("/v1/embeddings", R"({"input":[{"text":"ab"},{"text":"c"}],"task":"retrieval.passage",)"
                              R"("normalized":false,"embedding_type":"float"})");
  EXPECT_EQ(numbers(r.at("data").at(0).at("embedding")), (std::vector<double>{2, 97, 0}));
  EXPECT_EQ(numbers(r.at("data").at(1).at("embedding")), (std::vector<double>{1, 99, 0}));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":"a","task":"guess"})"), HasSubstr("retrieval.query"));
  EXPECT_THAT(refusal("/v1/embeddings", R"({"input":[{"image":"x"}]})"), HasSubstr("input"));
}

TEST_F(PoolingTest, PromptsStandBeforeTextsOfTheirKind) {
  serve([](const Request& r, int) { return Script{.pooled = {static_cast<float>(r.prompt.size())}}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 20;
          options.pooling.text_prompts = {{"query", "ask: "}, {"passage", "p:"}, {"clustering", "c"}};
          engine_->described = {.max_model_len = 20,
                                .tasks = {.default_task = Task::embed, .pooled_size = 1}};
        });
  const auto tokens = [&](const std::string& kind) {
    const json::object r = reply("/v2/embed", fmt::format(R"({{"texts":["x"],"input_type":"{}"}})", kind));
    return numbers(r.at("embeddings").at("float").at(0))[0];
  };
  EXPECT_EQ(tokens("search_query"), 6);
  EXPECT_EQ(tokens("search_document"), 3);
  EXPECT_EQ(tokens("passage"), 3);
  EXPECT_EQ(tokens("clustering"), 2);
  EXPECT_EQ(tokens("classification"), 1);
  EXPECT_THAT(
      refusal("/v2/embed", R"({"texts":["x"],"input_type":"nonsense"})"),
      HasSubstr("Unsupported input_type \"nonsense\": must be one of classification, clustering, image, "
                "passage, query, search_document, search_query"));
}

TEST_F(PoolingTest, AnErrorOfTheEngineIsTheAnswer) {
  serve(
      [](const Request&, int) {
        return Script{.end = FinishReason::error, .error = Error{ErrorCode::internal, "no numbers", {}}};
      },
      [&](ServeOptions&, http::ServerOptions&) {
        engine_->described = {.max_model_len = 20, .tasks = {.default_task = Task::embed, .pooled_size = 3}};
      });
  EXPECT_EQ(post("/v1/embeddings", R"({"input":["a","b"]})").status, 500);
  engine_->refusal_code = ErrorCode::resource_exhausted;
  EXPECT_EQ(post("/v1/embeddings", R"({"input":["a","b"]})").status, 429);
}

}  // namespace
}  // namespace octavo
