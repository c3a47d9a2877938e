#include "fleet/pick/grpc_body.h"

#include "fleet/pick/test_processor.h"
#include "vllm_engine.pb.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  RouteRequest route{.body_error = "not JSON", .unreadable = true};
  ASSERT_TRUE(read_vllm_grpc(framed(request.SerializeAsString()), route));
  EXPECT_THAT(route.tokens, ElementsAre(1, 70'000, 2));
  EXPECT_TRUE(route.tokens_are_exact);
  EXPECT_TRUE(route.stream);
  EXPECT_EQ(route.output_tokens_max, 9);
  EXPECT_EQ(route.body_error, "");
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
  constexpr std::string_view kPath = "/vllm.grpc.engine.VllmEngine/Generate";
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

}  // namespace
}  // namespace octavo::fleet
