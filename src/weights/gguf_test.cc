#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/scratch_directory.h"
#include "weights/testing/gguf.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kF32 = 0, kQ8 = 8;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string error_of(const std::string& file) {
  const auto contents = parse_gguf(bytes_of(file), "x.gguf");
  return contents ? "accepted" : contents.error().message;
}

std::string f32s(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += GgufBuilder::raw(value);
  return bytes;
}

GgufBuilder example() {
  GgufBuilder file;
  file.text("general.architecture", "llama").u32("llama.block_count", 2).f32("eps", 1e-5F);
  file.value("yes", GgufType::boolean, "\x01").texts("tokens", {"a", "", "bc"});
  file.value("big", GgufType::u64, GgufBuilder::raw(std::uint64_t{1} << 40));
  file.value("small", GgufType::i8, GgufBuilder::raw(std::int8_t{-3}));
  file.value("heads", GgufType::list,
             GgufBuilder::raw(GgufType::i32) + GgufBuilder::raw(std::uint64_t{2}) +
                 GgufBuilder::raw(std::int32_t{8}) + GgufBuilder::raw(std::int32_t{8}));
  file.value("nested", GgufType::list,
             GgufBuilder::raw(GgufType::list) + GgufBuilder::raw(std::uint64_t{1}) +
                 GgufBuilder::raw(GgufType::u8) + GgufBuilder::raw(std::uint64_t{2}) + "xy");
  file.tensor("b", {3}, kF32, f32s({1, 2, 3}));
  file.tensor("a", {64, 2}, kQ8, std::string(4 * 34, '\x11'));
  return file;
}

TEST(Gguf, ReadsWhatWasWritten) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufBuilder builder = example();
    builder.version = version;
    const std::string file = builder.build();
    const auto contents = parse_gguf(bytes_of(file), "x.gguf");
    ASSERT_TRUE(contents.has_value()) << contents.error().message;
    const GgufMetadata& m = contents->metadata;
    EXPECT_EQ(*m.text("general.architecture"), "llama");
    EXPECT_EQ(*m.number("llama.block_count"), 2);
    EXPECT_EQ(*m.number("eps"), 1e-5F);
    EXPECT_EQ(*m.boolean("yes"), true);
    EXPECT_EQ(*m.number("big"), 1.0995116e12 + 27776);
    EXPECT_EQ(*m.number("small"), -3);
    EXPECT_EQ(*m.number("heads"), 8);
    EXPECT_THAT(*m.numbers("heads"), ElementsAre(8, 8));
    EXPECT_THAT(*m.texts("tokens"), ElementsAre("a", "", "bc"));
    EXPECT_EQ(*m.text("absent"), std::nullopt);
    EXPECT_THAT(m.keys("ne"), ElementsAre("nested"));
    ASSERT_EQ(contents->tensors.size(), 2);
    const StoredTensor& b = contents->tensors[0];
    EXPECT_EQ(b.name, "b");
    EXPECT_EQ(b.dtype, DType::f32);
    EXPECT_EQ(view_of(b).as<float>()[2], 3);
    const StoredTensor& a = contents->tensors[1];
    EXPECT_EQ(a.encoding, Encoding::q8_0);
    EXPECT_THAT(a.shape, ElementsAre(2, 64));
    EXPECT_EQ(a.bytes.size(), 4 * 34);
  }
}

TEST(Gguf, ValuesOfAnotherKindAreErrorsThatNameTheKey) {
  const std::string file = example().build();
  const auto contents = parse_gguf(bytes_of(file), "x.gguf");
  ASSERT_TRUE(contents.has_value());
  const GgufMetadata& m = contents->metadata;
  EXPECT_EQ(m.text("eps").error().message, "x.gguf: eps must be a text");
  EXPECT_EQ(m.boolean("eps").error().message, "x.gguf: eps must be true or false");
  EXPECT_EQ(m.number("tokens").error().message, "x.gguf: tokens must be a list of numbers");
  EXPECT_EQ(m.number("yes").error().message, "x.gguf: yes must be a number");
  EXPECT_EQ(m.numbers("nested").error().message, "x.gguf: nested must be a list of numbers");
  EXPECT_EQ(m.texts("heads").error().message, "x.gguf: heads must be a list of texts");
  EXPECT_EQ(m.count("small", 9).error().message, "x.gguf: small is -3, but must be a whole number in [0, 9]");
}

TEST(Gguf, TruncatedAnywhere) {
  const std::string file = example().build();
  ASSERT_EQ(error_of(file), "accepted");
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string error = error_of(file.substr(0, size));
    EXPECT_NE(error, "accepted") << size;
    EXPECT_TRUE(error.contains("the file ends within") || error.contains("the file has only") ||
                error.contains("its header alone needs") || error.contains("longer than the file") ||
                error.contains("not a GGUF file"))
        << size << ": " << error;
  }
}

TEST(Gguf, AnyByteDamaged) {
  const std::string good = example().build();
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0, 1, 9, 127, 255}) {
      std::string file = good;
      file[at] = static_cast<char>(value);
      const auto contents = parse_gguf(bytes_of(file), "x.gguf");
      if (contents) continue;
      EXPECT_THAT(contents.error().message, HasSubstr("x.gguf")) << at;
    }
  }
}

TEST(Gguf, WrongFiles) {
  const auto with = [](auto&& change) {
    GgufBuilder file = example();
    change(file);
    return error_of(file.build());
  };
  using B = GgufBuilder;
  EXPECT_THAT(error_of("GGML0000"), HasSubstr("x.gguf: the file is not a GGUF file"));
  EXPECT_THAT(with([](B& f) { f.version = 1; }), HasSubstr("GGUF version 1, but only versions 2 and 3"));
  EXPECT_THAT(with([](B& f) { f.version = 0x03000000; }), HasSubstr("little-endian"));
  EXPECT_THAT(with([](B& f) { f.tensor_count_extra = 1ull << 40; }), HasSubstr("the limit is 1000000"));
  EXPECT_THAT(with([](B& f) { f.u32("eps", 1); }), HasSubstr("the key eps occurs twice"));
  EXPECT_THAT(with([](B& f) { f.u32("", 1); }), HasSubstr("a key has 0 bytes, but must have 1 to 65535"));
  EXPECT_THAT(with([](B& f) { f.value("k", static_cast<GgufType>(13), "x"); }),
              HasSubstr("k has a value of the unknown type 13"));
  EXPECT_THAT(with([](B& f) {
                f.value("k", GgufType::list, B::raw(GgufType::f64) + B::raw(std::uint64_t{1} << 61));
              }),
              HasSubstr("the value of k is not a list, or is longer than the file"));
  EXPECT_THAT(with([](B& f) { f.u32("general.alignment", 12); }),
              HasSubstr("general.alignment is 12, but must be a multiple of 8"));
  EXPECT_THAT(with([](B& f) { f.u32("general.alignment", 0); }), HasSubstr("but must be a multiple of 8"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {1, 1, 1, 1, 1}, kF32, "abcd"); }),
              HasSubstr("tensor c has 5 dimensions, but must have 1 to 4"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {}, kF32, "abcd"); }), HasSubstr("tensor c has 0 dimensions"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {0}, kF32, ""); }), HasSubstr("tensor c: dimension 1 is 0"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {1ull << 40, 1ull << 40}, kF32, ""); }),
              HasSubstr("tensor c: dimension 2 is"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {1ull << 62}, kF32, ""); }), HasSubstr("overflows"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {48}, kQ8, std::string(68, 'x')); }),
              HasSubstr("tensor c: rows have 48 elements, but must be a multiple of 32 (Q8_0)"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {4}, 99, "abcd"); }),
              HasSubstr("tensor c has the unknown format 99"));
  EXPECT_THAT(with([](B& f) { f.tensor("c", {1}, kF32, "abcd", 0); }),
              HasSubstr("tensor c begins at byte 0 of the data, but must begin at 192"));
  EXPECT_THAT(with([](B& f) { f.tensor(std::string(300, 'n'), {1}, kF32, "abcd"); }),
              HasSubstr("the name of a tensor has 300 bytes, but must have 1 to 255"));
  EXPECT_THAT(with([](B& f) { f.rest = std::string(100, '\0'); }),
              HasSubstr("the last 76 bytes belong to no tensor"));
}

TEST(Gguf, OtherAlignment) {
  GgufBuilder file = example();
  EXPECT_EQ(error_of(file.build()), "accepted");
  GgufBuilder wide;
  wide.alignment = 128;
  wide.u32("general.alignment", 128);
  wide.tensor("a", {1}, kF32, "abcd").tensor("b", {1}, kF32, "efgh");
  EXPECT_EQ(error_of(wide.build()), "accepted");
}

class GgufFiles : public testing::Test {
 protected:
  void write(std::string_view name, const GgufBuilder& file) { directory_.write(name, file.build()); }
  static GgufBuilder part(std::uint16_t number, std::uint16_t count) {
    GgufBuilder file;
    return file.u16("split.no", number).u16("split.count", count);
  }
  std::string open(const std::string& name) const {
    const auto gguf = Gguf::open(directory_ / name);
    return gguf ? "accepted" : gguf.error().message;
  }

  ScratchDirectory directory_;
};

TEST_F(GgufFiles, SplitIntoThree) {
  write("m-00001-of-00003.gguf", part(0, 3).text("k", "v").u32("split.tensors.count", 2));
  write("m-00002-of-00003.gguf", part(1, 3).tensor("b", {1}, kF32, "abcd"));
  write("m-00003-of-00003.gguf", part(2, 3).tensor("a", {1}, kF32, "abcd"));
  const auto gguf = Gguf::open(directory_ / "m-00001-of-00003.gguf");
  ASSERT_TRUE(gguf.has_value()) << gguf.error().message;
  EXPECT_EQ(*gguf->metadata.text("k"), "v");
  ASSERT_EQ(gguf->tensors.size(), 2);
  EXPECT_EQ(gguf->tensors[0].name, "a");
  EXPECT_NE(gguf->find("b"), nullptr);
  EXPECT_EQ(gguf->find("c"), nullptr);

  EXPECT_THAT(open("m-00002-of-00003.gguf"), HasSubstr("is file 2 of 3: give the first file, "));
  write("m-00003-of-00003.gguf", part(1, 3).tensor("a", {1}, kF32, "abcd"));
  EXPECT_THAT(open("m-00001-of-00003.gguf"),
              HasSubstr("the metadata says file 2 of 3, but the file's name says 3 of 3"));
  write("m-00003-of-00003.gguf", part(2, 3).tensor("b", {1}, kF32, "abcd"));
  EXPECT_THAT(open("m-00001-of-00003.gguf"), HasSubstr("tensor b occurs twice"));
  write("m-00003-of-00003.gguf", part(2, 3));
  EXPECT_THAT(open("m-00001-of-00003.gguf"),
              HasSubstr("split.tensors.count is 2, but the 3 files have 1 tensors"));
  fs::remove(directory_ / "m-00003-of-00003.gguf");
  EXPECT_THAT(open("m-00001-of-00003.gguf"), HasSubstr("m-00003-of-00003.gguf"));
  fs::rename(directory_ / "m-00001-of-00003.gguf", directory_ / "x.gguf");
  EXPECT_THAT(open("x.gguf"), HasSubstr("file 1 of 3, but its name does not end in -00001-of-00003.gguf"));
}

TEST_F(GgufFiles, NotThere) { EXPECT_THAT(open("none.gguf"), HasSubstr("none.gguf")); }

}  // namespace
}  // namespace octavo
