#include "fleet/relay/disaggregation.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

TEST(Disaggregation, LogProbabilitiesOfThePromptKeepItAtOneEngine) {
  for (const char* body :
       {R"({"prompt":"a","prompt_logprobs":0})", R"({"prompt":"a","echo":true,"logprobs":1})"})
    EXPECT_FALSE(prefill_request("/v1/completions", body)) << body;
  EXPECT_FALSE(prefill_request("/inference/v1/generate",
                               R"({"token_ids":[1],"sampling_params":{"prompt_logprobs":1}})"));
  for (const char* body : {R"({"prompt":"a","prompt_logprobs":null})", R"({"prompt":"a","logprobs":1})",
                           R"({"prompt":"a","echo":true})"})
    EXPECT_TRUE(prefill_request("/v1/completions", body)) << body;
}

TEST(Disaggregation, ThePromptIsComputedOnceForSeveralAnswers) {
  const auto prefill = prefill_request("/v1/completions", R"({"prompt":"a","n":4,"best_of":4})");
  EXPECT_EQ(prefill->at("n"), 1);
  EXPECT_EQ(prefill->at("best_of"), 1);
}

TEST(Disaggregation, ThePrefillRequestHasOneTokenAndKeepsTheRest) {
  const auto body =
      prefill_body("/v1/chat/completions",
                   R"({"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true},
                                     "max_completion_tokens":100,"min_tokens":5,"temperature":0.7,"seed":9})");
  ASSERT_TRUE(body);
  EXPECT_EQ(json::parse(*body), json::parse(R"({"model":"m","messages":[],"stream":false,"max_tokens":1,
      "max_completion_tokens":1,"min_tokens":1,"temperature":0.7,"seed":9,
      "kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,
                            "remote_block_ids":null,"remote_host":null,"remote_port":null}})"));
}

TEST(Disaggregation, OnlyOnePromptToContinueIsSplit) {
  const std::string_view path = "/v1/completions";
  EXPECT_TRUE(prefill_body(path, R"({"prompt":"a"})"));
  EXPECT_TRUE(prefill_body(path, R"({"prompt":["a"]})"));
  EXPECT_TRUE(prefill_body(path, R"({"prompt":[1,2,3]})"));
  EXPECT_FALSE(prefill_body(path, R"({"prompt":["a","b"]})"));
  EXPECT_FALSE(prefill_body(path, R"({"prompt":[[1],[2]]})"));
  EXPECT_FALSE(prefill_body(path, R"({"prompt":"a","kv_transfer_params":{"do_remote_decode":true}})"));
  EXPECT_FALSE(prefill_body(path, "[]"));
  EXPECT_FALSE(prefill_body(path, "{}"));
  EXPECT_FALSE(prefill_body(path, "{"));
  EXPECT_FALSE(prefill_body("/v1/embeddings", R"({"input":"a"})"));
}

TEST(Disaggregation, TheDecodeRequestIsTheUnchangedRequest) {
  const std::string_view body = " {\"prompt\": \"a\", \"seed\": 18446744073709551615, \"x\": 1.10}";
  const auto params = kv_transfer_params(R"({"id":"c","kv_transfer_params":{"remote_port":5600}})");
  EXPECT_EQ(params, R"({"remote_port":5600})");
  EXPECT_EQ(decode_body(body, *params),
            " {\"kv_transfer_params\":{\"remote_port\":5600},"
            "\"prompt\": \"a\", \"seed\": 18446744073709551615, \"x\": 1.10}");
  EXPECT_FALSE(kv_transfer_params(R"({"kv_transfer_params":null})"));
  EXPECT_FALSE(kv_transfer_params(R"({"id":"c"})"));
  EXPECT_FALSE(kv_transfer_params("nonsense"));
}

}  // namespace
}  // namespace octavo::fleet
