#include "openai/anthropic_client.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo::anthropic {
namespace {

namespace json = boost::json;

json::value amended(std::string_view path, int status, std::string body) {
  http::Response response{.status = status, .body = std::move(body)};
  amend(response, path, "req");
  EXPECT_EQ(response.headers.find("request-id"), "req");
  return json::parse(response.body);
}

TEST(AnthropicClient, IsKnownByItsPathOrItsHeader) {
  EXPECT_TRUE(is_client("/v1/messages", {}));
  EXPECT_TRUE(is_client("/v1/messages/batches", {}));
  EXPECT_TRUE(is_client("/v1/models", {{"Anthropic-Version", "2023-06-01"}}));
  EXPECT_TRUE(is_client("/v1/models/a/b", {{"anthropic-version", "2023-06-01"}}));
  EXPECT_FALSE(is_client("/v1/models", {}));
  EXPECT_FALSE(is_client("/v1/chat/completions", {{"anthropic-version", "2023-06-01"}}));
  EXPECT_FALSE(is_client("/health", {{"anthropic-version", "2023-06-01"}}));
}

TEST(AnthropicClient, ModelsAreInItsForm) {
  const json::value card =
      amended("/v1/models/m", 200, R"({"object":"model","id":"m","created":1700000000})");
  EXPECT_EQ(card, json::parse(R"({"type":"model","id":"m","display_name":"m",)"
                              R"("created_at":"2023-11-14T22:13:20Z"})"));
  const json::value known =
      amended("/v1/models/m", 200, R"({"object":"model","id":"m","max_model_len":4096})");
  EXPECT_EQ(known.at("max_input_tokens"), 4096);
  EXPECT_EQ(known.at("max_tokens"), 4096);
  const json::value list = amended(
      "/v1/models", 200,
      R"({"object":"list","data":[{"object":"model","id":"a"},{"object":"model","id":"b","created":-1}]})");
  EXPECT_EQ(list.at("first_id"), "a");
  EXPECT_EQ(list.at("last_id"), "b");
  EXPECT_EQ(list.at("has_more"), false);
  EXPECT_EQ(list.at("data").at(1).at("created_at"), "1970-01-01T00:00:00Z");
  EXPECT_TRUE(amended("/v1/models", 200, R"({"object":"list","data":[]})").at("last_id").is_null());
  EXPECT_EQ(amended("/v1/models/m", 200, R"({"object":"model","id":"m","created":9223372036854775807})")
                .at("created_at"),
            "9999-12-31T23:59:59Z");
}

TEST(AnthropicClient, ErrorsHaveItsFormAndTheId) {
  const json::value error =
      amended("/v1/messages", 404, R"({"error":{"message":"no","type":"NotFoundError"}})");
  EXPECT_EQ(error, json::parse(R"({"type":"error","error":{"type":"not_found_error","message":"no"},)"
                               R"("request_id":"req"})"));
  const json::value own = amended(
      "/v1/messages", 400, R"({"type":"error","error":{"type":"x","message":"y"},"request_id":"worker"})");
  EXPECT_EQ(own.at("error").at("type"), "x");
  EXPECT_EQ(own.at("request_id"), "worker") << "the answer of a worker keeps its id";
}

TEST(AnthropicClient, OtherAnswersStay) {
  const std::string message = R"({"object":"model","id":"m"})";
  EXPECT_EQ(amended("/v1/messages", 200, message), json::parse(message));
  http::Response stream{.status = 500, .headers = {{"request-id", "worker"}}, .body = "event: x"};
  amend(stream, "/v1/messages", "req");
  EXPECT_EQ(stream.body, "event: x");
  EXPECT_EQ(stream.headers.find("request-id"), "worker");
}

}  // namespace
}  // namespace octavo::anthropic
