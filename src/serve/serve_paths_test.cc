#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

TEST_F(ServeTest, PathsHaveAProxysPrefixOrNot) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.root_path = "/llm"; });
  const auto get = [&](const std::string& path) { return client().request("GET", path, "", {}).value(); };
  for (const std::string path : {"/v1/models", "/llm/v1/models", "/llm/health", "/health", "/llm/v1/models/demo"})
    EXPECT_EQ(get(path).status, 200) << path;
  EXPECT_EQ(get("/llms/v1/models").status, 404);
  EXPECT_EQ(post("/llm/v1/completions", kCompletion + "}").status, 200);
  for (const auto& [path, right] : std::initializer_list<std::pair<std::string, std::string>>{
           {"/v1/models/", "/v1/models"}, {"/llm/v1/models/", "/llm/v1/models"}, {"/health/?a=b", "/health?a=b"}}) {
    const http::Response moved = get(path);
    EXPECT_EQ(moved.status, 307) << path;
    EXPECT_EQ(moved.headers.find("Location"), right);
  }
}

TEST_F(ServeTest, WrongPathsMethodsAndTypesAreNamed) {
  serve_text("x");
  http::Client c = client();
  EXPECT_THAT(c.get("/nope")->body, ::testing::HasSubstr(R"(the route \"/nope\" does not exist)"));
  EXPECT_THAT(
      c.post_json("/v1/chat/completion", "{}")->body,
      ::testing::HasSubstr(R"(\"/v1/chat/completion\" does not exist; did you mean /v1/chat/completions?)"));
  EXPECT_THAT(c.post_json("/v1/responses/resp_1/stop", "{}")->body,
              ::testing::HasSubstr("/v1/responses/ID/cancel"));
  EXPECT_THAT(c.get("/v1/completions")->body,
              ::testing::HasSubstr(R"(GET is not allowed for \"/v1/completions\": use POST)"));
  EXPECT_THAT(c.get("/v1/responses/resp_1/stop")->body, ::testing::HasSubstr("/v1/responses/ID/input_items"));
  EXPECT_EQ(c.request("PUT", "/v1/responses/a", "{}")->headers.find("Allow"), "GET, HEAD, DELETE");
  EXPECT_EQ(c.request("DELETE", "/v1/responses/a/cancel")->headers.find("Allow"), "POST");
  EXPECT_EQ(c.request("HEAD", "/v1/responses/a/input_items")->status, 404);
  EXPECT_EQ(c.request("PUT", "/ping", "{}")->headers.find("Allow"), "GET, HEAD, POST");
  EXPECT_EQ(c.request("PUT", "/octavo/live", "{}")->headers.find("Allow"), "GET");
  EXPECT_THAT(c.request("POST", "/v1/completions", "{}", {{"Content-Type", "text/plain"}})->body,
              ::testing::HasSubstr(R"(must be application/json, got \"text/plain\")"));
}

}  // namespace
}  // namespace octavo
