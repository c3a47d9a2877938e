#include "fleet/route/resumable_stream.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::string_view kPath = "/v1/completions";
constexpr std::string_view kRequest =
    R"({"prompt":"a","stream":true,"stream_options":{"include_usage":true}})";
constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string part(std::string_view id, std::string_view fields) {
  return "data: {\"id\":\"" + std::string(id) + R"(","created":)" + std::to_string(id.size()) +
         R"(,"choices":[{"index":0,)" + std::string(fields) + "}]}\n\n";
}

TEST(ResumableStream, OnlyAStreamOfOneAnswerWhoseTokensAreTold) {
  const auto goes_on = [](std::string_view body) { return ResumableStream::of(kPath, body).has_value(); };
  EXPECT_TRUE(goes_on(R"({"prompt":"a","stream":true,"n":1,"tools":[],"logprobs":2})"));
  EXPECT_TRUE(ResumableStream::of("/v1/chat/completions", R"({"messages":[],"stream":true})"));
  EXPECT_TRUE(ResumableStream::of("/v1/responses", R"({"input":"a","stream":true})"));
  EXPECT_TRUE(ResumableStream::of("/v1/messages", R"({"messages":[],"stream":true})"));
  EXPECT_FALSE(ResumableStream::of(
      "/v1/responses", R"({"input":"a","stream":true,"include":["message.output_text.logprobs"]})"));
  for (const std::string_view body :
       {"", "[]", R"({"prompt":"a"})", R"({"prompt":"a","stream":false})",
        R"({"prompt":"a","stream":true,"n":2})", R"({"prompt":["a","b"],"stream":true})",
        R"({"prompt":"a","stream":true,"include_reasoning":false})",
        R"({"prompt":"a","stream":true,"kv_transfer_params":{}})",
        R"({"prompt":"a","stream":true,"resume_token_ids":[]})"})
    EXPECT_FALSE(goes_on(body)) << body;
}

TEST(ResumableStream, AsksForTokensAndTakesThemOut) {
  auto stream = *ResumableStream::of(kPath, kRequest);
  EXPECT_EQ(json::parse(stream.body()).at("return_token_ids"), true);
  EXPECT_EQ(stream.push(part("x", R"("text":"a","token_ids":[7],"prompt_token_ids":[1,2])")),
            part("x", R"("text":"a")"));
  EXPECT_EQ(stream.push(": comment\n\n"), ": comment\n\n");
  EXPECT_EQ(stream.push(kDone), kDone);
  EXPECT_TRUE(stream.ended());
}

TEST(ResumableStream, AClientThatAsksForTokensGetsTheBytesAsTheyCome) {
  auto stream = *ResumableStream::of(kPath, R"({"prompt":"a","stream":true,"return_token_ids":true})");
  const std::string text = part("x", R"("text":"a","logprob":-0.50,"token_ids":[7])");
  EXPECT_EQ(stream.push(text), text);
  auto unwanted = *ResumableStream::of(kPath, R"({"prompt":"a","stream":true,"return_token_ids":false})");
  EXPECT_EQ(json::parse(unwanted.body()).at("return_token_ids"), true);
  EXPECT_EQ(unwanted.push(part("x", R"("text":"a","token_ids":[7])")), part("x", R"("text":"a")"));
}

TEST(ResumableStream, GoesOnBehindTheLastWholeEvent) {
  auto stream = *ResumableStream::of(kPath, kRequest);
  EXPECT_FALSE(stream.begun());
  const std::string cut = part("first", R"("text":"lost","token_ids":[9])");
  EXPECT_EQ(stream.push(part("first", R"("text":"a","token_ids":[7,8])") + cut.substr(0, cut.size() - 1)),
            part("first", R"("text":"a")"));
  stream.lost();
  EXPECT_TRUE(stream.begun());
  EXPECT_TRUE(stream.knows_tokens());
  const json::value body = json::parse(stream.body());
  EXPECT_EQ(body.at("resume_token_ids"), json::parse("[7,8]"));
  EXPECT_EQ(body.at("prompt"), "a");
  EXPECT_FALSE(stream.rest());
  // The stream contains only the output of the next worker, and keeps the first id.
  EXPECT_EQ(stream.push(part("second", R"("text":"b","token_ids":[9])")), part("first", R"("text":"b")"));
  stream.lost();
  EXPECT_EQ(json::parse(stream.body()).at("resume_token_ids"), json::parse("[7,8,9]"));
}

TEST(ResumableStream, WhatIsMissingBehindACompleteAnswer) {
  auto stream = *ResumableStream::of(kPath, kRequest);
  stream.push(part("x", R"("text":"a","token_ids":[7],"prompt_token_ids":[1,2])"));
  stream.push(part("x", R"("text":"b","token_ids":[8,9],"finish_reason":"stop")"));
  stream.lost();
  EXPECT_EQ(
      *stream.rest(),
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"total_tokens\":5,\"completion_tokens\":3},"
      "\"id\":\"x\",\"created\":1}\n\n" +
          std::string(kDone));
  auto plain = *ResumableStream::of(kPath, R"({"prompt":"a","stream":true})");
  plain.push(part("x", R"("text":"b","token_ids":[8],"finish_reason":"length")"));
  EXPECT_EQ(*plain.rest(), kDone);
}

TEST(ResumableStream, TextOfUnknownTokensCannotGoOn) {
  auto stream = *ResumableStream::of("/v1/chat/completions", R"({"messages":[],"stream":true})");
  stream.push(part("x", R"("delta":{"role":"assistant","content":""},"finish_reason":null)"));
  EXPECT_TRUE(stream.knows_tokens());
  stream.push(part("x", R"("delta":{"content":"a"})"));
  EXPECT_FALSE(stream.knows_tokens());
}

TEST(ResumableStream, AnErrorOfTheReplicaIsALossOneOfTheClientIsAnEvent) {
  auto stream = *ResumableStream::of(kPath, kRequest);
  const std::string refused = "data: {\"error\":{\"message\":\"no\",\"code\":400}}\n\n";
  EXPECT_EQ(stream.push(refused), refused);
  const std::string late = "data: {\"error\":{\"message\":\"late\",\"param\":\"timeout\",\"code\":503}}\n\n";
  EXPECT_EQ(stream.push(late), late) << "its own deadline";
  EXPECT_FALSE(stream.failed());
  EXPECT_EQ(stream.push("data: {\"error\":{\"message\":\"stops\",\"code\":503}}\n\n" + std::string(kDone)),
            "");
  EXPECT_TRUE(stream.failed());
  EXPECT_FALSE(stream.ended());
}

std::string named(std::string_view type, std::string_view fields) {
  return "event: " + std::string(type) + "\ndata: {\"type\":\"" + std::string(type) + "\"" +
         std::string(fields) + "}\n\n";
}

TEST(ResumableStream, StepsOfEventsWithNamesArriveWhole) {
  auto stream = *ResumableStream::of("/v1/messages", R"({"messages":[],"stream":true})");
  EXPECT_EQ(json::parse(stream.body()).at("return_token_ids"), true);
  constexpr std::string_view kMessage = R"(,"message":{"id":"msg_1"})";
  EXPECT_EQ(stream.push(named("message_start", std::string(kMessage) + R"(,"token_ids":[])")),
            named("message_start", kMessage));
  EXPECT_EQ(stream.push(named("ping", "")), named("ping", "")) << "a keep-alive is not held back";
  const std::string start = named("content_block_start", R"(,"index":0)");
  EXPECT_EQ(stream.push(start), "");
  EXPECT_EQ(stream.push(named("content_block_delta", R"(,"index":0,"token_ids":[7,8])")),
            start + named("content_block_delta", R"(,"index":0)"));
  EXPECT_EQ(stream.push(named("content_block_stop", R"(,"index":0)")), "") << "half of a step";
  stream.lost();
  EXPECT_TRUE(stream.knows_tokens());
  const json::object body = json::parse(stream.body()).as_object();
  EXPECT_EQ(body.at("resume_token_ids"), json::parse("[7,8]"));
  EXPECT_FALSE(body.contains("request_id"));
  const std::string end = named("content_block_stop", R"(,"index":0)") + named("message_delta", "");
  EXPECT_EQ(stream.push(end + named("message_stop", R"(,"token_ids":[9])")), end + named("message_stop", ""));
  EXPECT_TRUE(stream.ended());
}

TEST(ResumableStream, AResponseKeepsItsIdAndItsNumbers) {
  auto stream = *ResumableStream::of("/v1/responses", R"({"input":"a","stream":true})");
  const std::string created =
      named("response.created", R"(,"response":{"id":"resp_1","created_at":5},"sequence_number":0)");
  EXPECT_EQ(stream.push(created), created);
  stream.push(named("response.in_progress", R"(,"sequence_number":1,"token_ids":[])"));
  EXPECT_EQ(
      stream.push(named("response.output_text.delta", R"(,"delta":"a","sequence_number":2,"token_ids":[7])")),
      named("response.output_text.delta", R"(,"delta":"a","sequence_number":2)"));
  stream.push(named("response.output_text.done", R"(,"sequence_number":3)"));
  stream.lost();
  EXPECT_EQ(json::parse(stream.body()).at("request_id"), "1");
  EXPECT_EQ(
      stream.push(named("response.output_text.done", R"(,"sequence_number":9)") +
                  named("response.completed",
                        R"(,"response":{"id":"resp_2","created_at":6},"sequence_number":10,"token_ids":[])")),
      named("response.output_text.done", R"(,"sequence_number":3)") +
          named("response.completed", R"(,"response":{"id":"resp_1","created_at":5},"sequence_number":4)"));
  EXPECT_TRUE(stream.ended());
}

TEST(ResumableStream, EventsWithNamesOfAnotherServerPass) {
  auto stream = *ResumableStream::of("/v1/messages", R"({"messages":[],"stream":true})");
  for (const std::string& event : {named("message_start", R"(,"message":{"id":"msg_1"})"),
                                   named("content_block_start", R"(,"index":0)")})
    EXPECT_EQ(stream.push(event), event);
  EXPECT_FALSE(stream.knows_tokens());
}

TEST(ResumableStream, AnErrorOfTheReplicaIsALossAmongEventsWithNames) {
  for (const std::string& lost : {named("error", R"(,"error":{"type":"overloaded_error","message":"stops"})"),
                                  named("response.failed", "")}) {
    auto stream = *ResumableStream::of("/v1/messages", R"({"messages":[],"stream":true})");
    EXPECT_EQ(stream.push(lost), "");
    EXPECT_TRUE(stream.failed());
  }
  auto stream = *ResumableStream::of("/v1/messages", R"({"messages":[],"stream":true})");
  const std::string own = named("error", R"(,"error":{"type":"invalid_request_error","message":"no"})");
  EXPECT_EQ(stream.push(own), own);
  EXPECT_FALSE(stream.failed());
}

// Servers other than `octavo serve` end events and streams in different ways.
TEST(ResumableStream, EventsEndAtAnyEmptyLine) {
  auto stream = *ResumableStream::of(kPath, R"({"prompt":"a","stream":true,"return_token_ids":true})");
  const std::string first = "data: {\"id\":\"x\"}\r\n\r\n", second = "data:{\"id\":\"x\"}\n\r\n";
  std::string text;
  for (const char byte : first + second) text += stream.push({&byte, 1});
  EXPECT_EQ(text, first + second);
  EXPECT_TRUE(stream.begun());
  for (const std::string_view done : {"data: [DONE]\r\n\r\n", "data:[DONE]\n\n", "data:[DONE]\r\n\r\n"}) {
    auto each = stream;
    EXPECT_EQ(each.push(done), done);
    EXPECT_TRUE(each.ended()) << done;
  }
}

}  // namespace
}  // namespace octavo::fleet
