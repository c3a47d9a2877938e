// Requests of Cohere's and SageMaker's clients.
#include <gmock/gmock.h>

#include "serve/pooling_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

TEST_F(PoolingTest, EmbedByTypeTruncatesAtEitherEnd) {
  serve_embedder(false);
  const auto vector = [&](const std::string& fields) {
    const json::object r = reply("/v2/embed", R"({"texts":["0123456789abcdefghijklmn"],)" + fields + "}");
    EXPECT_EQ(r.at("meta").at("tokens").at("input_tokens"),
              r.at("meta").at("billed_units").at("input_tokens"));
    EXPECT_EQ(r.at("meta").at("billed_units").at("image_tokens"), 0);
    return numbers(r.at("embeddings").at("float").at(0));
  };
  EXPECT_EQ(vector(R"("truncate":"END")"), (std::vector<double>{20, '0', 0}));
  EXPECT_EQ(vector(R"("truncate":"START")"), (std::vector<double>{20, '4', 0}));
  EXPECT_EQ(vector(R"("truncate":"START","max_tokens":5)"), (std::vector<double>{5, 'j', 0}));
  EXPECT_EQ(vector(R"("truncate":"END","max_tokens":5)"), (std::vector<double>{5, '0', 0}));
  EXPECT_THAT(refusal("/v2/embed", R"({"texts":["123456"],"truncate":"NONE","max_tokens":5})"),
              HasSubstr("max_tokens: is 5, but a text has 6 tokens"));
  const json::object left = reply(
      "/v1/embeddings", R"({"input":"0123456789","truncate_prompt_tokens":4,"truncation_side":"left"})");
  EXPECT_EQ(numbers(left.at("data").at(0).at("embedding")), (std::vector<double>{4, '6', 0}));
}

TEST_F(PoolingTest, InvocationsAreForTheRouteOfTheirFields) {
  serve_embedder();
  EXPECT_EQ(reply("/invocations", R"({"input":"ab"})").at("data").at(0).at("object"), "embedding");
  EXPECT_EQ(reply("/invocations", R"({"messages":[{"role":"u","content":"hi"}]})").at("object"), "list");
  EXPECT_EQ(reply("/invocations", R"({"text_1":"a","text_2":["b"]})").at("data").at(0).at("object"), "score");
  EXPECT_THAT(refusal("/invocations", R"({"prompt":"ab"})"), HasSubstr("body: must have input or messages"));
  serve_reranker();
  EXPECT_TRUE(reply("/invocations", R"({"query":"a","documents":["b"]})").contains("results"));
  EXPECT_EQ(reply("/invocations", R"({"input":"ab"})").at("data").at(0).at("label"), "relevant");
}

// The score is the number of tokens minus 10.
TEST_F(PoolingTest, QueriesAndDocumentsAreShortened) {
  serve_reranker();
  const auto tokens = [&](const std::string& options) {
    return reply("/score",
                 R"({"queries":"abcdef","items":["0123456789"],"use_activation":false)" + options + "}")
        .at("usage")
        .at("prompt_tokens")
        .as_int64();
  };
  const std::int64_t all = tokens("");
  EXPECT_EQ(tokens(R"(,"max_tokens_per_doc":0)"), all);
  EXPECT_EQ(tokens(R"(,"max_tokens_per_doc":4)"), all - 6);
  EXPECT_EQ(tokens(R"(,"max_tokens_per_query":2,"max_tokens_per_doc":15)"), all - 4);
  EXPECT_THAT(refusal("/rerank", R"({"query":"a","documents":["b"],"max_tokens_per_doc":-5})"),
              HasSubstr("max_tokens_per_doc must be a non-negative integer"));
  EXPECT_THAT(refusal("/rerank", R"({"query":"a","documents":["b"],"max_tokens_per_query":20})"),
              HasSubstr("must be less than max_model_len 20"));
}

TEST_F(PoolingTest, InstructionsReachTheTemplateOfPairs) {
  template_ =
      ChatTemplate::compile("{{ instruction }}{% for m in messages %}[{{ m.content }}]{% endfor %}", {})
          .value();
  std::string read;
  serve_pairs(read);
  reply("/rerank", R"({"query":"a","documents":["b"],"instruction":"Find:"})");
  EXPECT_EQ(read, "Find:[a][b]");
  reply("/score",
        R"({"text_1":"a","text_2":"b","instruction":"x","chat_template_kwargs":{"instruction":"Own:"}})");
  EXPECT_EQ(read, "Own:[a][b]");
}

// The vector of "?" is (1, 63, 0).
TEST_F(PoolingTest, VectorsHaveTheFormatOfTheRequest) {
  serve_embedder(false);
  const auto bytes = [&](const std::string& fields) {
    const http::Response response =
        post("/v1/embeddings", R"({"input":["?","?"],"encoding_format":"bytes_only",)" + fields + "}");
    EXPECT_EQ(response.headers.find("metadata"), std::nullopt);
    EXPECT_EQ(response.body.substr(0, response.body.size() / 2),
              response.body.substr(response.body.size() / 2));
    return response.body.substr(0, response.body.size() / 2);
  };
  using namespace std::string_literals;
  EXPECT_EQ(bytes(R"("endianness":"big")"), "\x3f\x80\0\0\x42\x7c\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes(R"("embed_dtype":"float16")"), "\0\x3c\xe0\x53\0\0"s);
  EXPECT_EQ(bytes(R"("embed_dtype":"bfloat16","endianness":"big")"), "\x3f\x80\x42\x7c\0\0"s);
  EXPECT_EQ(bytes(R"("embed_dtype":"fp8_e4m3")"), "\x38\x68\0"s);
  EXPECT_EQ(bytes(R"("embed_dtype":"fp8_e5m2")"), "\x3c\x54\0"s);
  const std::string half = R"({"input":"?","embed_dtype":"float16","encoding_format":)";
  EXPECT_EQ(reply("/v1/embeddings", half + R"("base64"})").at("data").at(0).at("embedding"), "ADzgUwAA");
  const http::Response with_metadata = post("/pooling", half + R"("bytes"})");
  EXPECT_EQ(with_metadata.content_type, "application/octet-stream");
  EXPECT_EQ(with_metadata.body.size(), 6U);
  const json::value metadata = json::parse(*with_metadata.headers.find("metadata"));
  EXPECT_EQ(metadata.at("usage").at("prompt_tokens"), 1);
  EXPECT_EQ(metadata.at("data").at(0),
            json::parse(R"({"index":0,"embed_dtype":"float16","endianness":"native",
                                                       "start":0,"end":6,"shape":[3]})"));
  for (const char* field : {R"("embed_dtype":"int8")", R"("endianness":"middle")", R"("padding":"longest")",
                            R"("padding":"max_length")", R"("encoding_format":"")"}) {
    const std::string name(field + 1, std::string_view(field).find('"', 1) - 1);
    EXPECT_THAT(refusal("/pooling", fmt::format(R"({{"input":"ab",{}}})", field)), HasSubstr(name));
  }
}

// The replies of both protocols must have the same digits.
TEST_F(PoolingTest, OllamasVectorsAreThoseOfOpenAi) {
  serve_embedder();
  const std::string openai = post("/v1/embeddings", R"({"input":["abc"]})").body;
  const std::size_t begin = openai.find("\"embedding\":[") + 12;
  const std::string vector = openai.substr(begin, openai.find(']', begin) + 1 - begin);
  ASSERT_EQ(vector.front(), '[') << openai;
  EXPECT_EQ(post("/api/embed", R"({"model":"demo","input":["abc","abc"]})").body,
            R"({"model":"demo","embeddings":[)" + vector + "," + vector + R"(],"prompt_eval_count":6})");
  EXPECT_EQ(post("/api/embeddings", R"({"model":"demo","prompt":"abc"})").body,
            R"({"embedding":)" + vector + "}");
  EXPECT_EQ(post("/api/embeddings", R"({"model":"demo","prompt":["abc","d"]})").status, 400);
  for (const std::string none : {"", R"(,"input":"")", R"(,"input":[])"})
    EXPECT_EQ(post("/api/embed", R"({"model":"demo")" + none + "}").body,
              R"({"model":"demo","embeddings":[],"prompt_eval_count":0})");
  EXPECT_EQ(post("/api/embeddings", R"({"model":"demo","prompt":""})").body, R"({"embedding":[]})");
  EXPECT_EQ(post("/api/embed", R"({"model":"other"})").status, 404);
}

}  // namespace
}  // namespace octavo
