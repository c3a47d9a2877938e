#include "openai/routes.h"

#include <gtest/gtest.h>

#include <set>

namespace octavo::openai {
namespace {

std::string_view found(std::string_view path) {
  const Route* route = find_route(path);
  return route ? route->path : "";
}

TEST(Routes, EachIsFoundByItsPath) {
  std::set<std::string_view> paths;
  for (const Route& route : routes()) {
    EXPECT_TRUE(paths.insert(route.path).second) << route.path;
    EXPECT_EQ(find_route(route.path), &route) << route.path;
    EXPECT_TRUE(!route.renders || find_route(std::string(route.path) + "/render")) << route.path;
    EXPECT_TRUE(!route.resumable || route.generates()) << route.path;
  }
}

TEST(Routes, TheLongestMatchCounts) {
  EXPECT_EQ(found("/openai/v1/chat/completions"), "/v1/chat/completions");
  EXPECT_EQ(found("/v1beta/openai/chat/completions"), "/v1/chat/completions");
  EXPECT_EQ(found("/a/completions"), "/v1/completions");
  EXPECT_EQ(found("/inference/v1/generate"), "/inference/v1/generate");
  EXPECT_EQ(found("/generate"), "/generate");
  EXPECT_EQ(found("/team/v1/messages"), "/v1/messages");
  EXPECT_EQ(found("/threads/7/messages"), "") << "OpenAI's, not Anthropic's";
  EXPECT_EQ(found("/v1/messages/batches"), "/v1/messages/");
  EXPECT_EQ(found("/v1/responses/resp_1/cancel"), "/v1/responses/");
  EXPECT_EQ(found("/v1/responses/input_tokens"), "/v1/responses/input_tokens");
  EXPECT_EQ(found("/v1/models/a/b"), "/v1/models/");
  EXPECT_EQ(found("/v1/chat/completions/"), "/v1/chat/completions") << "as llm-d and FastAPI";
  EXPECT_EQ(found("/team/v1/completions//"), "/v1/completions");
  EXPECT_EQ(found("/health"), "");
  EXPECT_EQ(found(""), "");
}

TEST(Routes, EachPathHasAProtocol) {
  EXPECT_EQ(protocol_of("/v1/messages/count_tokens"), Protocol::anthropic);
  EXPECT_EQ(protocol_of("/api/chat"), Protocol::ollama);
  EXPECT_EQ(protocol_of("/api/tags"), Protocol::ollama);
  EXPECT_EQ(protocol_of("/metrics"), Protocol::openai);
}

}  // namespace
}  // namespace octavo::openai
