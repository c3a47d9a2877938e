// Tests models that read only text, over HTTP: what happens with images.
#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Agents send the images of tool results and earlier turns again in each request.
TEST_F(ServeTest, ModelsOfTextAloneOmitImagesOfToolsAndOfEarlierTurns) {
  serve_text("fine");
  const auto prompt = [&](const std::string& path, const std::string& body) {
    reply(path, body);
    std::string text;
    for (const TokenId id : engine_->last_request.prompt) text += static_cast<char>(id);
    return text;
  };
  const std::string part = R"({"type":"image_url","image_url":{"url":"data:,"}})";
  EXPECT_THAT(
      prompt("/v1/chat/completions",
             R"({"max_tokens":4,"messages":[{"role":"user","content":[)" + part +
                 R"(]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
                          "function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":[)" +
                 part + R"(]},{"role":"assistant","content":"A"},{"role":"user","content":"B"}]})"),
      AllOf(HasSubstr("user: [image omitted"), HasSubstr("tool: [image omitted"), HasSubstr("user: B")));
  EXPECT_THAT(prompt("/v1/responses", R"({"max_output_tokens":4,"input":[{"role":"user","content":"A"},
      {"type":"function_call","call_id":"1","name":"look","arguments":"{}"},
      {"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"data:,"}]}]})"),
              HasSubstr("tool: [image omitted"));
  EXPECT_THAT(
      prompt("/v1/messages", R"({"model":"demo","max_tokens":4,"messages":[{"role":"user","content":"A"},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"look","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}]})"),
      HasSubstr("tool: [image omitted"));
}

TEST_F(ServeTest, ModelsOfTextAloneRefuseImages) {
  serve_text("never");
  const http::Response response =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("demo is not a multimodal model"));
}

}  // namespace
}  // namespace octavo
