#include "fleet/route/stored_responses.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(StoredResponses, KnowsWhoGaveAnId) {
  StoredResponses stored;
  stored.learn("resp_1", "a:80");
  stored.learn("resp_2", "b:80");
  stored.learn("resp_1", "c:80");
  EXPECT_EQ(stored.worker_of("resp_1"), "c:80");
  EXPECT_EQ(stored.worker_of("resp_2"), "b:80");
  EXPECT_EQ(stored.worker_of("resp_3"), "");
  stored.learn(std::string(10'000, 'x'), "a:80");
  EXPECT_EQ(stored.worker_of(std::string(10'000, 'x')), "") << "no id";
}

TEST(StoredResponses, RemembersTheLastOnes) {
  StoredResponses stored;
  for (std::size_t i = 0; i <= StoredResponses::kResponsesMax; ++i) stored.learn(std::to_string(i), "a:80");
  EXPECT_EQ(stored.worker_of("0"), "");
  EXPECT_EQ(stored.worker_of("1"), "a:80");
}

TEST(StoredResponses, FindsTheIdOfAnAnswer) {
  EXPECT_EQ(created_id(R"({"id": "resp_1", "object": "response"})", "resp"), "resp_1");
  EXPECT_EQ(created_id(R"({"id": "conv_1", "object": "conversation"})", "conv"), "conv_1");
  EXPECT_EQ(
      created_id(
          "event: response.created\ndata: {\"response\":{\"tool\":{\"id\":\"t\"},\"id\":\"resp_2\"}}\n\n",
          "resp"),
      "resp_2");
  for (const char* answer : {"", R"({"id": 5})", R"({"id": "x"})", "\"id\"", "\"id\":\"resp"})
    EXPECT_TRUE(created_id(answer, "resp").empty() || std::string_view(answer).ends_with("resp")) << answer;
}

}  // namespace
}  // namespace octavo::fleet
