#include "hub/package_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::hub {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;

TEST(PackageIndex, FindsALinkByTheFilesName) {
  const std::string page =
      "<!DOCTYPE html><a href=\"https://files/a-1.tar.gz#sha256=0\">a-1.tar.gz</a><br/>\n"
      "<a data-requires-python=\"&gt;=3.9\" "
      "href='../../packages/a-1-py3-none-any.whl?x=1&amp;y=2#sha256=0'>a</a>\n"
      "<a href=\"b%2B1.whl\">b+1.whl</a> <a href=plain.whl>";
  EXPECT_THAT(link_to(page, "a-1.tar.gz"), Optional(std::string("https://files/a-1.tar.gz")));
  EXPECT_THAT(link_to(page, "a-1-py3-none-any.whl"),
              Optional(std::string("../../packages/a-1-py3-none-any.whl?x=1&y=2")));
  EXPECT_THAT(link_to(page, "b+1.whl"), Optional(std::string("b%2B1.whl")));
  for (const char* none : {"a-1", "plain.whl", "1-py3-none-any.whl"})
    EXPECT_FALSE(link_to(page, none)) << none;
  for (const char* broken : {"", "href=", "href=\"", "<a href='a.whl", "href=\"%zz/a.whl%\""})
    EXPECT_FALSE(link_to(broken, "a.whl")) << broken;
}

TEST(PackageIndex, ErrorsShowNoPassword) {
  EXPECT_EQ(PackageIndex::make("https://user:secret@mirror:8443/simple/")->host(), "mirror");
  EXPECT_EQ(PackageIndex::make("mirror/simple/a@b")->host(), "mirror");
  const auto wrong = PackageIndex::make("https://user:secret@mir ror/simple");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().field, "PIP_INDEX_URL");
  EXPECT_THAT(wrong.error().message, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace octavo::hub
