#include "fleet/route/worker_of_id.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

std::shared_ptr<const Endpoint> at(std::string name) {
  return std::make_shared<const Endpoint>(Endpoint{.name = std::move(name)});
}

TEST(WorkerOfId, KnowsWhoGaveAnId) {
  WorkerOfId stored;
  stored.learn("resp_1", at("a:80"));
  stored.learn("resp_2", at("b:80"));
  stored.learn("resp_1", at("c:80"));
  EXPECT_EQ(stored.find("resp_1")->name, "c:80");
  EXPECT_EQ(stored.find("resp_2")->name, "b:80");
  EXPECT_EQ(stored.find("resp_3"), nullptr);
  stored.learn(std::string(10'000, 'x'), at("a:80"));
  EXPECT_EQ(stored.find(std::string(10'000, 'x')), nullptr) << "no id";
}

TEST(WorkerOfId, RemembersTheLastOnes) {
  WorkerOfId stored;
  for (std::size_t i = 0; i <= WorkerOfId::kIdsMax; ++i) stored.learn(std::to_string(i), at("a:80"));
  EXPECT_EQ(stored.find("0"), nullptr);
  EXPECT_EQ(stored.find("1")->name, "a:80");
}

TEST(WorkerOfId, ForgetsAWorker) {
  WorkerOfId stored;
  stored.learn("1", at("a:80"));
  stored.learn("2", at("b:80"));
  stored.learn("3", at("a:80"));
  stored.forget("a:80");
  EXPECT_EQ(stored.find("1"), nullptr);
  EXPECT_EQ(stored.find("3"), nullptr);
  EXPECT_EQ(stored.find("2")->name, "b:80");
  stored.learn("1", at("b:80"));
  EXPECT_EQ(stored.find("1")->name, "b:80");
}

TEST(WorkerOfId, FindsTheIdOfAnAnswer) {
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
