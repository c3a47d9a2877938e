#include "fleet/discover/etcd_mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string kv(const std::string& key, const std::string& value) {
  return fmt::format(R"({{"key":"{}","value":"{}","mod_revision":"3"}})", encode_base64(key),
                     encode_base64(value));
}

TEST(EtcdMirror, AsksForAllKeysOfAPrefix) {
  const EtcdMirror mirror("/w/");
  EXPECT_EQ(mirror.range(), R"({"key":"L3cv","range_end":"L3cw"})");  // the range ends at "/w0"
  EXPECT_THAT(EtcdMirror("\xff").range(), HasSubstr(R"("range_end":"AA==")"));
}

TEST(EtcdMirror, FollowsChangesBehindTheList) {
  EtcdMirror mirror("/w/");
  ASSERT_TRUE(mirror.listed(R"({"header":{"revision":"7"},"kvs":[)" + kv("/w/a", "1") + "," +
                            kv("/w/b", "2") + "]}"));
  EXPECT_THAT(mirror.values(), ElementsAre(Pair("/w/a", "1"), Pair("/w/b", "2")));
  EXPECT_THAT(mirror.watch(), HasSubstr(R"("start_revision":"8")"));

  EXPECT_FALSE(mirror.line(R"({"result":{"header":{"revision":"7"},"created":true}})").value());
  EXPECT_TRUE(mirror
                  .line(R"({"result":{"header":{"revision":"9"},"events":[{"kv":)" + kv("/w/c", "3") +
                        R"(},{"type":"DELETE","kv":{"key":")" + encode_base64("/w/a") + R"("}}]}})")
                  .value());
  EXPECT_THAT(mirror.values(), ElementsAre(Pair("/w/b", "2"), Pair("/w/c", "3")));
  EXPECT_THAT(mirror.watch(), HasSubstr(R"("start_revision":"10")"));

  ASSERT_TRUE(mirror.listed(R"({"header":{"revision":"12"}})"));
  EXPECT_TRUE(mirror.values().empty());
}

TEST(EtcdMirror, AWatchThatEndsIsAnError) {
  EtcdMirror mirror("/w/");
  EXPECT_FALSE(
      mirror.line(R"({"result":{"header":{"revision":"9"},"canceled":true,"compact_revision":"8"}})"));
  EXPECT_FALSE(mirror.line(R"({"error":{"grpc_code":14,"message":"leaving"}})"));
}

TEST(EtcdMirror, WhatMakesNoSenseIsAnErrorAndChangesNothing) {
  EtcdMirror mirror("/w/");
  ASSERT_TRUE(mirror.listed(R"({"header":{"revision":"7"},"kvs":[)" + kv("/w/a", "1") + "]}"));
  for (const char* bad :
       {"", "[]", "{}", R"({"header":{}})", R"({"header":{"revision":7}})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"1"},"kvs":{}})", R"({"header":{"revision":"1"},"kvs":[1]})",
        R"({"header":{"revision":"1"},"kvs":[{"key":1}]})",
        R"({"header":{"revision":"1"},"kvs":[{"key":"#"}]})"})
    EXPECT_FALSE(mirror.listed(bad)) << bad;
  for (const char* bad : {"", "{}", R"({"result":1})", R"({"result":{}})",
                          R"({"result":{"header":{"revision":"8"},"events":1}})",
                          R"({"result":{"header":{"revision":"8"},"events":[{}]}})"})
    EXPECT_FALSE(mirror.line(bad)) << bad;
  EXPECT_THAT(mirror.values(), ElementsAre(Pair("/w/a", "1")));
}

}  // namespace
}  // namespace octavo::fleet
