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

}  // namespace
}  // namespace octavo
