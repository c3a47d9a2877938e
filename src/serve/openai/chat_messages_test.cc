// Tests the conversion of a chat request's messages for templates.
#include <gtest/gtest.h>

#include "serve/openai/chat_request.h"

namespace octavo::openai {
namespace {

std::string messages(const std::string& value) {
  const auto body = parse_body("{\"messages\":" + value + "}");
  if (!body) return "not JSON";
  RequestRules rules;
  rules.model_names = {"m"};
  rules.limits.vocab_size = 1000;
  rules.max_model_len = 512;
  const auto request = parse_chat_request(*body, rules);
  return request ? request->prompt.messages : request.error().field;
}

TEST(Messages, AreBroughtToTheFormThatTemplatesTake) {
  EXPECT_EQ(messages(R"([{"role":"user","content":"a"}])"), R"([{"role":"user","content":"a"}])");
  EXPECT_EQ(
      messages(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":null,"tool_calls":[
                 {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]}])"),
            R"([{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":)"
            R"({"name":"f","arguments":{"x":1}}}]}])");
}

// A client may send the server's replies back as messages.
TEST(Messages, TakeOurOwnReplies) {
  EXPECT_EQ(messages(R"([{"role":"assistant","content":null,"reasoning":"r"}])"),
            R"([{"role":"assistant","content":"","reasoning":"r","reasoning_content":"r"}])");
  EXPECT_EQ(messages(R"([{"role":"assistant"}])"), R"([{"role":"assistant","content":""}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}])"),
            R"([{"role":"assistant","content":[{"type":"text","text":"no"}]}])");
  // Mistral's clients send reasoning in this form.
  EXPECT_EQ(
      messages(R"([{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]},
                 {"type":"text","text":"a"}]}])"),
      R"([{"role":"assistant","content":[{"type":"text","text":"a"}],"reasoning":"h","reasoning_content":"h"}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":[{"type":"thinking","thinking":"h"}]}])"),
            R"([{"role":"assistant","content":"","reasoning":"h","reasoning_content":"h"}])");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"thinking","thinking":"h"}]}])"),
            "messages[0].content");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":null,"tool_calls":[
                 {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\": "}}]}])"),
            R"([{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":)"
            R"({"name":"f","arguments":"{\"x\": "}}]}])");
}

TEST(Messages, TakeWhatVllmTakes) {
  EXPECT_EQ(messages(R"([{"role":"user","content":["a",{"text":"b"}]}])"),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":[{"refusal":"no"}]}])"),
            R"([{"role":"assistant","content":[{"type":"text","text":"no"}]}])");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"image_url":"x"}]}])"),
            "messages[0].content[0].image_url");
  EXPECT_EQ(messages(R"([{"role":"user"},{"role":"tool","tool_call_id":"c","content":null}])"),
            R"([{"role":"user","content":""},{"role":"tool","content":"","tool_call_id":"c"}])");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"what":"b"}]}])"), "messages[0].content[0].type");
}

TEST(Messages, ErrorsNameThePlace) {
  EXPECT_EQ(messages("null"), "messages");
  EXPECT_EQ(messages("[]"), "messages");
  EXPECT_EQ(messages("\"hi\""), "messages");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":null,"reasoning":"Hm."}])"),
            R"([{"role":"assistant","content":"","reasoning":"Hm.","reasoning_content":"Hm."}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","content":null}])"), R"([{"role":"assistant","content":""}])");
  EXPECT_EQ(messages("[1]"), "messages[0]");
  EXPECT_EQ(messages(R"([{"content":"a"}])"), "messages[0].role");
  EXPECT_EQ(messages(R"([{"role":"user","content":"a"},{"role":"user","content":null}])"),
            "messages[1].content");
  EXPECT_EQ(messages(R"([{"role":"user","content":1}])"), "messages[0].content");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
            "messages[0].content[0].image_url");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])"),
            "messages[0].content[0].input_audio");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"video_url","video_url":{}}]}])"),
            "messages[0].content[0].video_url");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"input_video","input_video":{}}]}])"),
            "messages[0].content[0].type");
  EXPECT_EQ(messages(R"([{"role":"user","content":[{"type":"text"}]}])"), "messages[0].content[0].text");
  EXPECT_EQ(
      messages(
          R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":7}}]}])"),
      "messages[0].tool_calls[0].function.arguments");
}

}  // namespace
}  // namespace octavo::openai
