#include "fleet/scan/request_scan.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

RouteRequest scan(std::string body) {
  http::Request request;
  request.body = std::move(body);
  return scan_request(request);
}

TEST(RequestScan, ReadsCompletions) {
  const RouteRequest r =
      scan(R"({"model": "m", "prompt": "hello", "max_tokens": 5, "stream": true, "priority": -1})");
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.text, "hello");
  EXPECT_EQ(r.tokens, estimated_tokens("hello"));
  EXPECT_EQ(r.output_tokens_max, 5);
  EXPECT_EQ(r.priority, -1);
  EXPECT_TRUE(r.stream);
  EXPECT_EQ(scan(R"({"prompt": ["a", "b"]})").text, "a");
}

TEST(RequestScan, SeesWhetherThePromptMayBeCut) {
  EXPECT_TRUE(scan(R"({"prompt": "a", "truncate_prompt_tokens": 5})").truncated);
  EXPECT_FALSE(scan(R"({"prompt": "a", "truncate_prompt_tokens": null})").truncated);
  EXPECT_FALSE(scan(R"({"prompt": "a"})").truncated);
}

TEST(RequestScan, TakesTokenIdsAsTheyAre) {
  const RouteRequest r = scan(R"({"prompt": [1, 2, 3]})");
  EXPECT_TRUE(r.tokens_are_exact);
  EXPECT_EQ(r.tokens, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(scan(R"({"prompt": [[7, 8], [9]]})").tokens, (std::vector<std::uint32_t>{7, 8}));
  EXPECT_FALSE(scan(R"({"prompt": [1, -2]})").tokens_are_exact);
}

TEST(RequestScan, SeesWhetherThereAreImages) {
  const auto media = [](const std::string& part) {
    return scan(R"({"messages": [{"role": "user", "content": [)" + part + "]}]}").media;
  };
  const std::string image = R"({"type": "image_url", "image_url": {"url": "x"}})";
  EXPECT_EQ(media(image).size(), 1U);
  EXPECT_EQ(media(image), media(R"({"type": "image_url", "image_url": "x"})"));
  EXPECT_NE(media(image), media(R"({"type": "image_url", "image_url": {"url": "y"}})"));
  EXPECT_EQ(media(R"({"type": "text", "text": "a"}, {"type": "input_audio", "input_audio": {}})").size(), 1U);
  EXPECT_TRUE(media(R"({"type": "text", "text": "image_url"}, "image_url")").empty());
}

TEST(RequestScan, SeesWhetherTheServerRunsTools) {
  const auto runs = [](const std::string& tool) {
    return scan(R"({"input": "x", "tools": [{"type": "function", "name": "f"})" + tool + "]}").server_tools;
  };
  EXPECT_TRUE(runs(R"(, {"type": "mcp", "server_label": "s"})"));
  EXPECT_TRUE(runs(R"(, {"type": "web_search_20250305", "name": "web_search"})"));
  EXPECT_FALSE(runs(""));
  EXPECT_FALSE(runs(R"(, {"type": "custom", "name": "g"}, {"name": "h"}, {"function": {"name": "i"}}, 7)"));
}

TEST(RequestScan, ReadsTheHeadersThatAreAskedFor) {
  http::Request request;
  request.headers.add("X-Tier", "gold");
  const std::string name = "x-tier";
  EXPECT_EQ(scan_request(request, std::span(&name, 1)).header("x-tier"), "gold");
  EXPECT_FALSE(scan_request(request).header("x-tier"));
}

TEST(RequestScan, ReadsConversationsOfAllProtocols) {
  EXPECT_EQ(
      scan(R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null}]})")
          .text,
      "userhiassistant");
  EXPECT_EQ(
      scan(
          R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]})")
          .text,
      "usera");
  EXPECT_EQ(scan(R"({"system": "s", "messages": [{"role": "user", "content": "hi"}]})").text, "suserhi");
  EXPECT_EQ(scan(R"({"instructions": "i", "input": [{"role": "user", "content": "hi"}]})").text, "iuserhi");
  EXPECT_EQ(scan(R"({"input": "embed me"})").text, "embed me");
  EXPECT_EQ(scan(R"({"tools": [{"a": 1}], "messages": []})").text, R"([{"a":1}])");
  EXPECT_EQ(scan(R"({"text": "sglang"})").text, "sglang");
}

TEST(RequestScan, WhatItDoesNotUnderstandIsTheEndpointsAffair) {
  for (const char* body :
       {"", "{", "[]", "null", "\xff\xfe", "{\"model\": 5, \"messages\": {\"a\": 1}, \"prompt\": {}}",
        "{\"messages\": [1, null, {\"content\": 5}], \"max_tokens\": \"x\", \"stream\": 1}"}) {
    const RouteRequest r = scan(body);
    EXPECT_EQ(r.model, "") << body;
    EXPECT_EQ(r.text, "") << body;
  }
  EXPECT_EQ(scan(std::string(100'000, '[')).text, "");
}

TEST(RequestScan, ReadsWhatPythonReads) {
  const auto prompt = [](const std::string& text) { return R"({"model": "m", "prompt": ")" + text + "\"}"; };
  EXPECT_EQ(scan("\xEF\xBB\xBF" + prompt("a")).model, "m") << "a byte order mark";
  std::string utf16 = "\xFF\xFE";
  for (const char c : prompt("a")) utf16 += {c, '\0'};
  EXPECT_EQ(scan(utf16).model, "m");
  EXPECT_EQ(scan(R"({"model": "m", "temperature": NaN, "top_p": -Infinity, "x": [Infinity]})").model, "m");
  EXPECT_EQ(scan(R"({"temperature": NaN, "prompt": "NaN \" Infinity"})").text, "NaN \" Infinity");
  for (const char* half : {R"(\ud83d)", R"(\udc00)", R"(\ud83dx)", R"(\ud83d\ud83d)", R"(\uDC00\uD83D)"})
    EXPECT_EQ(scan(prompt(half)).model, "m") << half;
  EXPECT_EQ(scan(prompt(R"(\ud83d \ud83d\ude00)")).text, "\xEF\xBF\xBD \xF0\x9F\x98\x80");
  EXPECT_EQ(scan(prompt(R"(\\ud83d NaN)")).text, R"(\ud83d NaN)") << "no escape";
  const auto nested = [](std::size_t depth) {
    return R"({"model": "m", "x": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(scan(nested(900)).model, "m");
  EXPECT_TRUE(scan(nested(100'000)).body.unreadable);
}

TEST(RequestScan, ReadsTheModelOfFormsAndPaths) {
  http::Request form;
  form.path = "/v1/audio/transcriptions";
  form.headers.add("Content-Type", "multipart/form-data; boundary=b");
  form.body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"model\"\r\n\r\nmodel\r\n"
              "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--b--\r\n";
  EXPECT_EQ(scan_request(form).model, "whisper");
  EXPECT_FALSE(scan_request(form).body.unreadable);
  http::Request get;
  get.path = "/v1/models/org/name";
  EXPECT_EQ(scan_request(get).model, "org/name");
  get.path = "/v1/responses/resp_1/cancel";
  EXPECT_EQ(scan_request(get).stored_id, "resp_1");
  get.path = "/v1/responses/resp_1/input_items";
  EXPECT_EQ(scan_request(get).stored_id, "resp_1");
  EXPECT_EQ(scan(R"({"previous_response_id": "resp_2", "input": "x"})").stored_id, "resp_2");
  get.path = "/v1/conversations/conv_1/items";
  EXPECT_EQ(scan_request(get).stored_id, "conv_1");
  EXPECT_EQ(scan(R"({"conversation": "conv_2", "input": "x"})").stored_id, "conv_2");
  EXPECT_EQ(scan(R"({"conversation": {"id": "conv_3"}, "input": "x"})").stored_id, "conv_3");
  EXPECT_EQ(scan(R"({"conversation": null, "previous_response_id": null, "input": "x"})").stored_id, "");
}

TEST(RequestScan, TheQueryNamesTheModelOfARequestWhoseBodyNamesNone) {
  http::Request create;
  create.method = "POST";
  create.path = "/v1/conversations";
  create.query = "model=org%2Fname";
  EXPECT_EQ(scan_request(create).model, "org/name");
  create.body = R"({"model": "other"})";
  EXPECT_EQ(scan_request(create).model, "other");
}

TEST(RequestScan, ReadsTheClientsOwnDeadline) {
  EXPECT_EQ(scan(R"({"timeout": 0.5})").timeout_s, 0.5);
  EXPECT_EQ(scan(R"({"timeout": 2})").timeout_s, 2);
  for (const char* body : {R"({"timeout": -1})", R"({"timeout": "x"})", R"({"timeout": 1e300})", "{}"})
    EXPECT_EQ(scan(body).timeout_s, 0) << body;
  http::Request request;
  request.body = R"({"timeout": 5})";
  request.headers.add("X-Request-Timeout", "3");
  EXPECT_EQ(scan_request(request).timeout_s, 3) << "the header counts";
}

TEST(RequestScan, SaysWhyABodyIsNoObject) {
  EXPECT_EQ(scan("{}").body.error, "");
  EXPECT_EQ(scan("7").body.error, "not an object");
  for (const char* body : {"", "{", "{\"a\": 1", "{} {}", "\xff"})
    EXPECT_NE(scan(body).body.error, "") << body;
}

TEST(RequestScan, TakesNoMoreMemoryThanABodyIsWorth) {
  const auto body = [](std::string_view item, int count) {
    std::string text = R"({"model": "m", "prompt": [1)";
    for (int i = 0; i < count; ++i) text += item;
    return text + "]}";
  };
  EXPECT_EQ(scan(body(",100000", 1'000'000)).tokens.size(), 1'000'001U);
  EXPECT_EQ(scan(body(",0", 1'000'000)).model, "");
}

TEST(RequestScan, KeepsTheHeadersThatPoliciesRead) {
  http::Request request;
  request.headers.add("X-SMG-Target-Worker", "2");
  request.headers.add("Other", "o");
  const RouteRequest r = scan_request(request);
  EXPECT_EQ(r.header("x-smg-target-worker"), "2");
  EXPECT_EQ(r.header("other"), std::nullopt);
}

TEST(RequestScan, RoutingKeysAreReadAsOtherRoutersReadThem) {
  http::Request request;
  const auto key = [&](std::string body) {
    request.body = std::move(body);
    return scan_request(request).routing_key;
  };
  EXPECT_EQ(key(R"({"model": "m"})"), "");
  EXPECT_EQ(key(R"({"user": 5, "user_id": "u"})"), "u");
  EXPECT_EQ(key(R"({"user": "u", "session_id": "s"})"), "u");
  EXPECT_EQ(key(R"({"user": "u", "prompt_cache_key": "c"})"), "c");
  EXPECT_EQ(key(R"({"metadata": {"user_id": "user_1_session_2"}})"), "user_1_session_2");
  EXPECT_EQ(key(R"({"user": "u", "session_params": {"session_id": "s"}})"), "s");
  EXPECT_EQ(key(R"({"user": ")" + std::string(5000, 'u') + "\"}"), std::string(256, 'u'));
  request.headers.add("X-Tenant-ID", "t");
  EXPECT_EQ(key(R"({"user": "u"})"), "t");
  request.headers.add("X-Session-ID", "s");
  EXPECT_EQ(key("no JSON"), "s");
  request.headers.add("X-SMG-Routing-Key", "k");
  EXPECT_EQ(key(R"({"user": "u"})"), "k");
}

}  // namespace
}  // namespace octavo::fleet
