#include "serve/openai/result_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>

namespace octavo::openai {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;

// Entries separated by spaces: "call" and ids, "ID" for a result, "user" for another message.
std::vector<std::size_t> order(std::string_view chat) {
  json::array messages;
  for (std::size_t begin = 0; begin < chat.size();) {
    const std::size_t end = std::min(chat.find(' ', begin), chat.size());
    const std::string entry(chat.substr(begin, end - begin));
    begin = end + 1;
    if (entry == "user") {
      messages.push_back(json::object{{"role", "user"}, {"content", "go"}});
    } else if (entry.starts_with("call:")) {
      json::array calls;
      for (const char id : entry.substr(5)) calls.push_back(json::object{{"id", std::string(1, id)}});
      messages.push_back(json::object{{"role", "assistant"}, {"tool_calls", calls}});
    } else {
      messages.push_back(json::object{{"role", "tool"}, {"tool_call_id", entry}, {"content", ""}});
    }
  }
  return message_order(messages);
}

TEST(ResultOrder, ResultsHaveTheOrderOfTheirCalls) {
  EXPECT_THAT(order("user call:abc c a b user"), ElementsAre(0, 1, 3, 4, 2, 5));
  EXPECT_THAT(order("call:ab a b"), ElementsAre(0, 1, 2));
  EXPECT_THAT(order("call:abc c a"), ElementsAre(0, 2, 1)) << "the result of b is missing";
  EXPECT_THAT(order("call:a call:b b a"), ElementsAre(0, 1, 3, 2)) << "calls in two messages";
  EXPECT_THAT(order("call:ab b a call:ab b a"), ElementsAre(0, 2, 1, 3, 5, 4))
      << "ids come again in later turns";
}

TEST(ResultOrder, WithoutAClearOrderResultsStay) {
  EXPECT_THAT(order("b a"), ElementsAre(0, 1)) << "no calls";
  EXPECT_THAT(order("call:ab b x"), ElementsAre(0, 1, 2)) << "an unknown id";
  EXPECT_THAT(order("call:aba b a a"), ElementsAre(0, 1, 2, 3)) << "two calls with one id";
  EXPECT_THAT(order("call:ab b a b"), ElementsAre(0, 1, 2, 3)) << "two results with one id";
  EXPECT_THAT(order("call:ab b user a"), ElementsAre(0, 1, 2, 3)) << "results in two turns";
  EXPECT_THAT(order("call:ab b a call:cd b a"), ElementsAre(0, 2, 1, 3, 4, 5))
      << "results of an earlier turn";
  EXPECT_THAT(
      message_order(json::parse(R"([1,{"role":"tool"},{"tool_calls":[1]},{"role":"tool"}])").as_array()),
      ElementsAre(0, 1, 2, 3));
}

TEST(ResultOrder, ItemsOfResponses) {
  const json::value items = json::parse(R"([{"role":"user","content":"go"},
      {"type":"function_call","call_id":"a"},{"type":"reasoning"},{"type":"custom_tool_call","call_id":"b"},
      {"type":"local_shell_call","call_id":"c"},{"type":"local_shell_call_output","id":"c"},
      {"type":"custom_tool_call_output","call_id":"b"},{"type":"function_call_output","call_id":"a"}])");
  EXPECT_THAT(item_order(items.as_array()), ElementsAre(0, 1, 2, 3, 4, 7, 6, 5));
}

TEST(ResultOrder, BlocksOfMessages) {
  const json::value before = json::parse(R"({"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]})");
  const json::value blocks = json::parse(R"([{"type":"tool_result","tool_use_id":"b"},
      {"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"go"}])");
  EXPECT_THAT(block_order(&before.as_object(), blocks.as_array()), ElementsAre(1, 0, 2));
  EXPECT_THAT(block_order(nullptr, blocks.as_array()), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace octavo::openai
