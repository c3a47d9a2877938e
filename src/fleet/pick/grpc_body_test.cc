#include "fleet/pick/grpc_body.h"

#include "fleet/pick/test_processor.h"
#include "fleet/pick/usage.h"
#include "vllm_engine.pb.h"

namespace octavo::fleet {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kPath = "/vllm.grpc.engine.VllmEngine/Generate";

std::string framed(const std::string& message) {
  std::string frame(5, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[4 - i] = static_cast<char>(message.size() >> 8 * i & 0xFF);
  return frame + message;
}

TEST(GrpcBody, TokensAreExactAndTextIsEstimated) {
  vllm::GenerateRequest request;
  for (const std::uint32_t id : {1U, 70'000U, 2U}) request.mutable_tokenized()->add_input_ids(id);
  request.mutable_sampling_params()->set_max_tokens(9);
  request.set_stream(true);
  RouteRequest route{.body = {.error = "not JSON", .unreadable = true}};
  ASSERT_TRUE(read_vllm_grpc(framed(request.SerializeAsString()), route));
  EXPECT_THAT(route.tokens, ElementsAre(1, 70'000, 2));
  EXPECT_TRUE(route.tokens_are_exact);
  EXPECT_TRUE(route.stream);
  EXPECT_EQ(route.output_tokens_max, 9);
  EXPECT_EQ(route.body.error, "");
  request.clear_tokenized();
  request.set_text("Once upon a time");
  ASSERT_TRUE(read_vllm_grpc(framed(request.SerializeAsString()), route));
  EXPECT_EQ(route.tokens, estimated_tokens("Once upon a time"));
  EXPECT_FALSE(route.tokens_are_exact);
}

TEST(GrpcBody, WhatIsNoMessageIsRefused) {
  RouteRequest route;
  const auto why = [&](std::string body) {
    const auto read = read_vllm_grpc(body, route);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(why("1234"), HasSubstr("no prefix"));
  std::string body = framed("\x28\x01");  // stream: true
  EXPECT_EQ(why(body), "");
  EXPECT_THAT(why(body + "x"), HasSubstr("has 3 bytes, and its prefix says 2"));
  EXPECT_THAT(why(framed("\x0f")), HasSubstr("not a GenerateRequest"));
  body[0] = 1;
  EXPECT_THAT(why(body), HasSubstr("compressed"));
}

TEST_F(ProcessorTest, VllmsGrpcRequestsAreRead) {
  begin(2, {.parsers = {.openai = false, .anthropic = false, .vllm = false, .passthrough = false}},
        {{{"", "prefix-cache-scorer"}}, {{"prefix-cache-scorer"}}});
  vllm::GenerateRequest request;
  request.set_text(std::string(4096, 'a'));
  const std::string body = framed(request.SerializeAsString());
  std::string first;
  for (int i = 0; i < 8; ++i) {
    next();
    ASSERT_TRUE(send(request_headers({{":path", std::string(kPath)}, {"content-type", "application/grpc"}})));
    ASSERT_TRUE(send(request_body(body)));
    const std::string chosen = choice_headers().at("x-gateway-destination-endpoint");
    if (i == 0) first = chosen;
    EXPECT_EQ(chosen, first) << "where its prefix is";
  }
  next();
  ASSERT_TRUE(send(request_headers({{":path", std::string(kPath)}})));
  ASSERT_TRUE(send(request_body("{}")));
  expect_refused(400, "no prefix");
}

// Returns a message with one new token of the output `index`.
std::string part(std::uint32_t index) {
  vllm::GenerateResponse answer;
  answer.mutable_chunk()->add_token_ids(70'000);
  answer.mutable_chunk()->set_prompt_tokens(90);
  answer.mutable_chunk()->set_cached_tokens(64);
  answer.mutable_chunk()->set_index(index);
  return framed(answer.SerializeAsString());
}

std::string complete(std::uint32_t index, int ids) {
  vllm::GenerateResponse answer;
  for (int i = 0; i < ids; ++i) answer.mutable_complete()->add_output_ids(7);
  answer.mutable_complete()->set_prompt_tokens(90);
  answer.mutable_complete()->set_cached_tokens(64);
  answer.mutable_complete()->set_index(index);
  return framed(answer.SerializeAsString());
}

TEST(GrpcAnswer, TokensOfAllOutputsAreCountedInPiecesOfAnySize) {
  // vLLM's last message of an output repeats the tokens of the message before it.
  const std::string streamed =
      part(0) + part(1) + part(0) + complete(0, 1) + part(1) + part(1) + complete(1, 1);
  for (std::size_t size = 1; size <= streamed.size(); ++size) {
    GrpcAnswer answer(kPath);
    std::int64_t tokens = 0;
    for (std::size_t at = 0; at < streamed.size(); at += size)
      tokens += answer.read(streamed.substr(at, size));
    EXPECT_EQ(tokens, 5);
    const Usage usage = token_counts(answer.usage());
    EXPECT_EQ(usage.input_tokens, 90);
    EXPECT_EQ(usage.output_tokens, 5);
    EXPECT_EQ(usage.cached_tokens, 64);
  }
  GrpcAnswer whole(kPath);
  EXPECT_EQ(whole.read(complete(0, 30) + complete(1, 12)), 42);
  EXPECT_EQ(token_counts(whole.usage()).output_tokens, 42);
}

TEST(GrpcAnswer, MessagesThatCannotBeReadAreLeftOut) {
  std::string compressed = complete(0, 30), invalid_message = framed("\x0f"), large(5, '\0');
  compressed[0] = 1;
  large[1] = 1;  // 16 MiB
  large.append(16 << 20, 'x');
  GrpcAnswer answer(kPath);
  EXPECT_EQ(answer.read(framed("") + invalid_message), 0);
  EXPECT_EQ(answer.usage(), std::nullopt);
  EXPECT_EQ(answer.read(compressed + large + complete(1, 12)), 12);
  EXPECT_EQ(token_counts(answer.usage()).output_tokens, 12);
}

TEST(GrpcAnswer, EmbeddingsHavePromptTokens) {
  vllm::EmbedResponse embedded;
  embedded.set_prompt_tokens(11);
  GrpcAnswer answer("/vllm.grpc.engine.VllmEngine/Embed");
  EXPECT_EQ(answer.read(framed("\x0a\x04\x0f\x0f\x0f\x0f" + embedded.SerializeAsString())), 0);
  EXPECT_EQ(token_counts(answer.usage()).input_tokens, 11);
  EXPECT_EQ(token_counts(answer.usage()).output_tokens, 0);
}

TEST_F(ProcessorTest, TokensOfGrpcAnswersAreInTheMetricsAndAttributes) {
  const RequestAttribute output{.name = "output",
                                .expression = *UsageExpression::parse("usage.completion_tokens")};
  begin(1, {.attributes = {output}});
  vllm::GenerateRequest request;
  request.set_text("Once upon a time");
  request.set_stream(true);
  ASSERT_TRUE(send(request_headers({{":path", std::string(kPath)}, {"content-type", "application/grpc"}})));
  ASSERT_TRUE(send(request_body(framed(request.SerializeAsString()))));
  ProcessingRequest message;
  message.mutable_response_headers();
  ASSERT_TRUE(send(message));
  ASSERT_TRUE(send(response_body(part(0) + part(0), false)));
  ASSERT_TRUE(send(response_body(part(0) + complete(0, 1), false)));
  message.mutable_response_trailers();
  ASSERT_TRUE(send(message));
  const auto& fields = answers_.at(0).dynamic_metadata().fields();
  EXPECT_EQ(fields.at("envoy.lb").struct_value().fields().at("output").number_value(), 3);
  EXPECT_THAT(context_->metrics.text(*balancer_->view()),
              AllOf(ContainsRegex("llm_d_epp_request_input_tokens_sum.* 90\n"),
                    ContainsRegex("llm_d_epp_request_output_tokens_sum.* 3\n"),
                    ContainsRegex("llm_d_epp_request_cached_tokens_sum.* 64\n")));
}

}  // namespace
}  // namespace octavo::fleet
