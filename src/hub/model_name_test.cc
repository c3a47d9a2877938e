#include "hub/model_name.h"

#include <gtest/gtest.h>

namespace octavo::hub {
namespace {

TEST(ModelName, Parts) {
  const auto name = parse_model_name("Qwen/Qwen3-0.6B-GGUF@refs/pr/1:Q4_K_M");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->repo, "Qwen/Qwen3-0.6B-GGUF");
  EXPECT_EQ(name->revision, "refs/pr/1");
  EXPECT_EQ(name->variant, "Q4_K_M");
}

TEST(ModelName, OldModelsHaveNoOwner) {
  const auto name = parse_model_name("gpt2");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->repo, "gpt2");
  EXPECT_EQ(name->revision_or_main(), "main");
}

TEST(ModelName, RefusesWhatIsNone) {
  for (const char* text :
       {"",       "/",        "a/",      "/a",    "a/b/c",   "../a",        "a/..",       "a/b..c",
        "a--b/c", "-a/b",     "a/b-",    "a b/c", "a/b@",    "a/b@../x",    "a/b@x/../y", "a/b@/x",
        "a/b@x/", "a/b@x//y", "a/b@x y", "a/b:",  "a/b:x/y", "a/b:Q4@main", "a/b.git",    "a/b\n"})
    EXPECT_FALSE(parse_model_name(text).has_value()) << text;
  EXPECT_FALSE(parse_model_name("a/" + std::string(100, 'b')).has_value());
  EXPECT_FALSE(parse_model_name("a/b@" + std::string(300, 'b')).has_value());
}

TEST(ModelName, Commits) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
}

}  // namespace
}  // namespace octavo::hub
