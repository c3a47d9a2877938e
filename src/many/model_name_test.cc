#include <gtest/gtest.h>

#include "many/model_handler.h"

namespace octavo::many {
namespace {

http::Request request(std::string path, std::string query, std::string body) {
  http::Request made;
  made.path = std::move(path);
  made.query = std::move(query);
  made.body = std::move(body);
  return made;
}

TEST(ModelName, TheQueryThenTheBodyThenOllamasOlderField) {
  EXPECT_EQ(model_name(request("/v1/x", "model=a", "{}"), "b", ""), "a");
  EXPECT_EQ(model_name(request("/v1/x", "", "{}"), "b", ""), "b");
  EXPECT_EQ(model_name(request("/api/show", "", R"({"name": "c"})"), "", ""), "c");
  EXPECT_EQ(model_name(request("/api/show", "", R"({"name": "c"})"), "b", ""), "b");
  EXPECT_EQ(model_name(request("/v1/x", "", R"({"name": "c"})"), "", ""), "");
  EXPECT_EQ(model_name(request("/api/show", "", R"({"name": 1})"), "", ""), "");
  EXPECT_EQ(model_name(request("/api/show", "", "no JSON"), "", ""), "");
}

}  // namespace
}  // namespace octavo::many
