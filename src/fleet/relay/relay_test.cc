#include "fleet/relay/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "fleet/relay/refusal.h"

namespace octavo::fleet {
namespace {

TEST(Relay, ARedirectionStaysAtTheProxy) {
  const http::Headers back = passed_back({{"location", "http://10.0.0.1:8000/v1/completions?a=b"},
                                          {"Content-Location", "http://10.0.0.1:80001/x"},
                                          {"Link", "http://10.0.0.1:8000/x"}},
                                         "http://10.0.0.1:8000");
  EXPECT_EQ(back.find("Location"), "/v1/completions?a=b");
  EXPECT_EQ(back.find("Content-Location"), "http://10.0.0.1:80001/x") << "another server";
  EXPECT_EQ(back.find("Link"), "http://10.0.0.1:8000/x");
}

TEST(Relay, WhatIsOfOneConnectionStaysThere) {
  const http::Headers passed = passed_on({{"Connection", "keep-alive, X-Hop"},
                                          {"connection", " x-other ,"},
                                          {"X-Hop", "1"},
                                          {"X-OTHER", "2"},
                                          {"Proxy-Connection", "keep-alive"},
                                          {"TE", "trailers"},
                                          {"Upgrade", "h2c"},
                                          {"X-Dup", "1"},
                                          {"X-Dup", "2"},
                                          {"Authorization", "k"}});
  EXPECT_EQ(passed.size(), 3U);
  EXPECT_EQ(passed.count("X-Dup"), 2U);
  EXPECT_TRUE(passed.find("Authorization"));
}

TEST(Relay, TargetsStayAsTheyWereWritten) {
  http::Request request;
  request.path = "/v1/models/org/name?x";
  request.encoded_path = "/v1/models/org%2Fname%3Fx";
  EXPECT_EQ(target_of(request), "/v1/models/org%2Fname%3Fx");
  request.query = "a=b%26c&d=%20e";
  EXPECT_EQ(target_of(request), "/v1/models/org%2Fname%3Fx?a=b%26c&d=%20e");
}

TEST(Relay, AnUpgradeIsOneWhereConnectionNamesIt) {
  const auto requests_upgrade = [](http::Headers headers) {
    http::Request request;
    request.headers = std::move(headers);
    return requests_websocket(request);
  };
  EXPECT_TRUE(requests_upgrade({{"Connection", "keep-alive, Upgrade"}, {"Upgrade", "WebSocket"}}));
  EXPECT_FALSE(requests_upgrade({{"Connection", "keep-alive"}, {"Upgrade", "websocket"}}));
  EXPECT_FALSE(requests_upgrade({{"Connection", "Upgrade, HTTP2-Settings"}, {"Upgrade", "h2c"}}));
}

TEST(Relay, AnswersWithoutALengthAreStreamsUnlessTheyAreJson) {
  const auto stream = [](std::string type, http::Headers headers = {}) {
    return is_stream({.content_type = std::move(type), .headers = std::move(headers)});
  };
  EXPECT_TRUE(stream("text/event-stream; charset=utf-8", {{"Content-Length", "5"}}));
  EXPECT_TRUE(stream("application/x-ndjson"));
  EXPECT_TRUE(stream("audio/wav"));
  EXPECT_FALSE(stream("application/json"));
  EXPECT_FALSE(stream("text/plain", {{"content-length", "5"}}));
}

TEST(Refusal, SaysWhomItSpeaksOf) {
  for (const int status : {408, 425, 429, 500, 502, 503, 504, 529})
    EXPECT_TRUE(worth_a_retry(status)) << status;
  for (const int status : {200, 400, 401, 404, 413, 501}) EXPECT_FALSE(worth_a_retry(status)) << status;
  EXPECT_TRUE(
      is_the_requests_own(R"({"error":{"message":"timeout: its 0.01 s are over","param":"timeout"}})"));
  for (const char* body :
       {"", "busy", R"({"error":{"param":null}})", R"({"error":{"param":""}})", R"({"error":1})"})
    EXPECT_FALSE(is_the_requests_own(body)) << body;
  for (const int status : {429, 503, 529}) EXPECT_TRUE(is_backpressure(status)) << status;
}

TEST(Refusal, SaysThatAModelIsMissing) {
  for (const char* body : {R"({"error":{"message":"The model `org/m` does not exist."}})",
                           R"({"error":"model 'org/m' not found"})",
                           R"({"error":"model \"org/m\" not found, try pulling it first"})"}) {
    EXPECT_TRUE(lacks_model(body, "org/m")) << body;
    EXPECT_FALSE(lacks_model(body, "m")) << body;
    EXPECT_FALSE(lacks_model(body, "")) << body;
  }
  for (const char* body : {"", R"({"detail":"Not Found"})", R"({"model":"org/m"})"})
    EXPECT_FALSE(lacks_model(body, "org/m")) << body;
}

TEST(Refusal, ReadsRetryAfterInAllItsForms) {
  const auto seconds = [](const std::string& value) {
    return retry_after_s({.headers = {{"Retry-After", value}}});
  };
  EXPECT_EQ(seconds("30"), 30);
  EXPECT_EQ(seconds("0.2"), 1) << "not at once";
  EXPECT_EQ(seconds("99999999999999999999"), 1'000'000'000);
  for (const char* value : {"", "-1", "soon", "2, 3", "nan", "Fri, 31 Dec 1999"})
    EXPECT_FALSE(seconds(value)) << value;
  for (const char* past :
       {"Fri, 31 Dec 1999 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT", "Fri Dec 31 23:59:59 1999"})
    EXPECT_EQ(seconds(past), 0) << past;
  const std::time_t soon = std::time(nullptr) + 30;
  char date[64];
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&soon));
  const auto left = seconds(date);
  EXPECT_LE(left, 30);
  EXPECT_GE(left, std::max<std::time_t>(soon - std::time(nullptr), 0));
}

}  // namespace
}  // namespace octavo::fleet
