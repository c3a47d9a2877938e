#include "fleet/discover/kube_mirror.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <vector>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Events : public KubeSink {
 public:
  void put(const std::string& name, const boost::json::object&) override { all.push_back("+" + name); }
  void removed(const std::string& name) override { all.push_back("-" + name); }
  void settled() override { all.push_back("."); }
  std::vector<std::string> take() { return std::exchange(all, {}); }
  std::vector<std::string> all;
};

std::string named(std::string_view name, std::string_view version) {
  return fmt::format(R"({{"metadata": {{"name": "{}", "resourceVersion": "{}"}}}})", name, version);
}
std::string event(std::string_view type, std::string_view name, std::string_view version) {
  return fmt::format(R"({{"type": "{}", "object": {}}})", type, named(name, version));
}
std::string list(std::string_view version, std::string_view items, std::string_view next = "") {
  return fmt::format(R"({{"metadata": {{"resourceVersion": "{}", "continue": "{}"}}, "items": [{}]}})",
                     version, next, items);
}

class KubeMirrorTest : public testing::Test {
 protected:
  Events events_;
  KubeMirror mirror_{"/api/v1/namespaces/default/pods", "labelSelector=a%3Db", events_};
};

TEST_F(KubeMirrorTest, ListsPageByPageThenWatches) {
  EXPECT_EQ(mirror_.target(), "/api/v1/namespaces/default/pods?labelSelector=a%3Db&limit=500");
  ASSERT_TRUE(mirror_.page(200, list("7", named("a", "1"), "more=")));
  EXPECT_TRUE(mirror_.listing());
  EXPECT_EQ(mirror_.target(),
            "/api/v1/namespaces/default/pods?labelSelector=a%3Db&limit=500&continue=more%3D");
  ASSERT_TRUE(mirror_.page(200, list("7", named("b", "2"))));
  EXPECT_THAT(events_.take(), ElementsAre("+a", "+b", "."));
  EXPECT_FALSE(mirror_.listing());
  EXPECT_TRUE(
      mirror_.target().ends_with("watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7"));
}

TEST_F(KubeMirrorTest, FollowsChangesAndBookmarks) {
  ASSERT_TRUE(mirror_.page(200, list("7", named("a", "1"))));
  events_.take();
  ASSERT_TRUE(mirror_.line(event("ADDED", "b", "8")));
  ASSERT_TRUE(mirror_.line(event("MODIFIED", "a", "9")));
  ASSERT_TRUE(mirror_.line(event("DELETED", "b", "10")));
  EXPECT_THAT(events_.take(), ElementsAre("+b", ".", "+a", ".", "-b", "."));
  ASSERT_TRUE(mirror_.line(R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99"}}})"));
  EXPECT_THAT(events_.take(), IsEmpty());
  EXPECT_TRUE(mirror_.target().ends_with("resourceVersion=99"));
}

TEST_F(KubeMirrorTest, AVersionThatIsTooOldMeansANewListAndWhatIsMissingThereIsGone) {
  ASSERT_TRUE(mirror_.page(200, list("7", named("a", "1") + "," + named("b", "2"))));
  events_.take();
  ASSERT_TRUE(
      mirror_.line(R"({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "old"}})"));
  EXPECT_TRUE(mirror_.listing());
  EXPECT_THAT(events_.take(), IsEmpty()) << "what is known stays until the list says otherwise";
  ASSERT_TRUE(mirror_.page(200, list("20", named("b", "2"))));
  EXPECT_THAT(events_.take(), ElementsAre("+b", "-a", "."));
  ASSERT_TRUE(mirror_.refused(410, "gone"));
  EXPECT_TRUE(mirror_.listing());
}

TEST_F(KubeMirrorTest, WhatCannotBeUnderstoodIsAnError) {
  EXPECT_FALSE(mirror_.page(403, "forbidden"));
  EXPECT_FALSE(mirror_.page(200, "{}"));
  EXPECT_FALSE(mirror_.page(200, "[]"));
  EXPECT_FALSE(mirror_.page(200, list("7", "{}")));
  EXPECT_TRUE(mirror_.listing());
  ASSERT_TRUE(mirror_.page(200, list("7", "")));
  for (const char* line : {"", "x", "{}", R"({"type": "ADDED"})", R"({"type": "ADDED", "object": {}})",
                           R"({"type": "ERROR", "object": {"code": 500}})"})
    EXPECT_FALSE(mirror_.line(line)) << line;
  EXPECT_FALSE(mirror_.line(event("NEW", "a", "1")));
  EXPECT_FALSE(mirror_.refused(403, "forbidden"));
}

TEST_F(KubeMirrorTest, APageWhoseTokenIsTooOldBeginsTheListAnew) {
  ASSERT_TRUE(mirror_.page(200, list("7", named("a", "1"), "next")));
  EXPECT_FALSE(mirror_.page(410, "expired"));
  EXPECT_TRUE(mirror_.target().ends_with("limit=500"));
}

}  // namespace
}  // namespace octavo::fleet
