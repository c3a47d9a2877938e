#include "http/url.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

TEST(Url, Parts) {
  const auto url = parse_url("https://hub.example:8443/a/b?c=d#e");
  ASSERT_TRUE(url.has_value());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "hub.example");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d");
}

TEST(Url, WhatIsLeftOut) {
  EXPECT_EQ(parse_url("https://a")->port, 443);
  EXPECT_EQ(parse_url("http://a")->port, 80);
  EXPECT_EQ(parse_url("a:1234")->port, 1234);
  EXPECT_FALSE(parse_url("a:1234")->tls);
  EXPECT_EQ(parse_url("a")->target, "/");
  EXPECT_EQ(parse_url("http://[::1]:80/x")->host, "::1");
}

TEST(Url, RefusesWhatIsNone) {
  for (const char* text :
       {"", "http://", "ftp://a", "http://:80", "http://a:b", "http://a:70000", "http://u:p@a",
        "http://a/b c", "http://a/\r\nX: y", "http://[::1", "http://[::1]80", "http://a:0", "http://a\"b"})
    EXPECT_FALSE(parse_url(text).has_value()) << text;
}

TEST(Url, Redirects) {
  const Url base = *parse_url("https://a/b");
  EXPECT_TRUE(same_origin(base, *redirected(base, "/c")));
  EXPECT_EQ(redirected(base, "/c?d")->target, "/c?d");
  EXPECT_EQ(redirected(base, "//cdn/c")->host, "cdn");
  EXPECT_TRUE(redirected(base, "//cdn/c")->tls);
  EXPECT_FALSE(same_origin(base, *redirected(base, "http://a/b")));
  EXPECT_FALSE(same_origin(base, *redirected(base, "https://a:8443/b")));
  EXPECT_FALSE(redirected(base, "/c d").has_value());
}

TEST(Url, RelativeReferences) {
  const Url base = *parse_url("https://a/simple/project/?x");
  const auto target = [&](std::string_view reference) { return redirected(base, reference)->target; };
  EXPECT_EQ(target("b.whl#sha256=0"), "/simple/project/b.whl");
  EXPECT_EQ(target("../../packages/b.whl"), "/packages/b.whl");
  EXPECT_EQ(target("../../../../b"), "/b");
  EXPECT_EQ(target("./b/../c/."), "/simple/project/c/");
  EXPECT_EQ(target(".."), "/simple/");
  EXPECT_EQ(target("?y=../z"), "/simple/project/?y=../z");
  EXPECT_EQ(target("b?y=../z"), "/simple/project/b?y=../z");
  EXPECT_EQ(target("#top"), "/simple/project/");
  EXPECT_EQ(redirected(*parse_url("https://a"), "b")->target, "/b");
  EXPECT_EQ(redirected(base, "http://c:81/d")->port, 81);
  for (const char* none : {"", "ftp://a/b", "mailto:a", "b c", "b\r\nX: y"})
    EXPECT_FALSE(redirected(base, none).has_value()) << none;
}

TEST(Url, HostAndPort) {
  EXPECT_EQ(host_and_port("a", 80), "a:80");
  EXPECT_EQ(host_and_port("::1", 80), "[::1]:80");
}

TEST(Url, HostHeader) {
  EXPECT_EQ(host_header("a", 443, true), "a");
  EXPECT_EQ(host_header("a", 443, false), "a:443");
  EXPECT_EQ(host_header("::1", 80, false), "[::1]");
}

}  // namespace
}  // namespace octavo::http
