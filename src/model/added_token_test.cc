#include "model/added_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

TEST(AddedToken, IsInOneOfThreeFiles) {
  const ScratchDirectory folder;
  const auto write = [&](const char* name, const char* text) { std::ofstream(folder.path() / name) << text; };
  const auto id = [&] { return id_of_added_token(folder.path().string(), "<IMG_CONTEXT>"); };
  EXPECT_THAT(id().error().message, testing::HasSubstr("no tokenizer file has the token \"<IMG_CONTEXT>\""));
  write("tokenizer.json",
        R"({"added_tokens": [{"id": 5, "content": "<img>"}, {"id": 7, "content": "<IMG_CONTEXT>"}]})");
  EXPECT_EQ(id().value(), 7);
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<IMG_CONTEXT>"},
        "151667": {"content": "<IMG_CONTEXT>"}}})");
  EXPECT_EQ(id().value(), 151667);
  write("added_tokens.json", R"({"<IMG_CONTEXT>": 92546})");
  EXPECT_EQ(id().value(), 92546);
  write("added_tokens.json", R"({"<IMG_CONTEXT>": -1})");
  EXPECT_EQ(id().value(), 151667);
}

}  // namespace
}  // namespace octavo
