#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace octavo {
namespace {

using testing::HasSubstr;

// Makes a file from a header and `data_bytes` bytes of data. `length` replaces the correct length of the
// header.
std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes,
                               std::optional<std::uint64_t> length = {}) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  const std::uint64_t n = length.value_or(header.size());
  std::memcpy(file.data(), &n, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

std::string error_of(std::span<const std::byte> file) {
  const auto tensors = parse_safetensors(file, "m");
  return tensors ? "accepted" : tensors.error().message;
}

TEST(Safetensors, ReadsTensorsInOrderOfNames) {
  const auto file = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[12,16]},"none":{"dtype":"I64","shape":[0],"data_offsets":[16,16]}}   )",
      16);
  const auto tensors = parse_safetensors(file, "m");
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_EQ((*tensors)[1].dtype, DType::bf16);
  EXPECT_THAT((*tensors)[1].shape, testing::ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[1].bytes.size(), 12u);
  EXPECT_EQ((*tensors)[0].bytes.data(), (*tensors)[1].bytes.data() + 12);
  EXPECT_TRUE((*tensors)[2].bytes.empty());
}

TEST(Safetensors, AnEmptyHeaderIsAnEmptyFile) {
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0), "m")->empty());
}

struct Bad {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  const char* message;
  std::optional<std::uint64_t> length = {};
};

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

const Bad kBad[] = {
    {"HeaderOver100MB", "{}", 0, "the header has 100000001 bytes, but the limit is 100000000", 100'000'001},
    {"HeaderLengthOverflows", "{}", 0, "the limit is 100000000", UINT64_MAX},
    {"HeaderBeyondFile", "{}", 0, "the header has 3 bytes, but the file has only 10", 3},
    {"HeaderCut", R"({"t":)", 0, "must end with }"},
    {"HeaderEmpty", "", 0, "must begin with {"},
    {"NotJson", "{]}", 0, "not valid JSON"},
    {"NotAnObject", "[]", 0, "must begin with {"},
    {"TextAfter", "{}{}", 0, "not valid JSON"},
    {"InvalidUtf8", "{\"\xff\":1}", 0, "not valid JSON"},
    {"PaddedWithNul", std::string("{}\0\0", 4), 0, "padded with spaces only"},
    {"PaddedWithNewline", "{}\n", 0, "padded with spaces only"},
    {"BlankInFront", " {}", 0, "must begin with {"},
    {"TooDeep", R"({"t":{"shape":[[1]]}})", 0, "too deep"},
    {"DataTruncated", one("F32", "[2]", "[0,8]"), 7,
     "tensor t ends at byte 8 of the data, but the file has only 7"},
    {"DataTooLong", one("F32", "[2]", "[0,8]"), 9, "the last 1 bytes belong to no tensor"},
    {"OffsetsBackwards", one("F32", "[2]", "[8,0]"), 8, "data_offsets [8, 0) must be in ascending order"},
    {"OffsetsHuge", one("F32", "[2]", "[0,9223372036854775807]"), 8, "ends at byte 9223372036854775807"},
    {"OffsetsOverflow", one("F32", "[2]", "[0,18446744073709551615]"), 8, "exceeds 2^63 - 1"},
    {"OffsetsNegative", one("F32", "[2]", "[-8,8]"), 8, "negative number -8"},
    {"OffsetsFraction", one("F32", "[2]", "[0,8.0]"), 8, "tensor t: a fraction"},
    {"OffsetsBeyondDouble", one("F32", "[2]", "[0,1e999]"), 8, "header"},
    {"OffsetsThree", one("F32", "[2]", "[0,8,8]"), 8, "data_offsets must be two numbers"},
    {"OffsetsOne", one("F32", "[2]", "[0]"), 8, "data_offsets must be two numbers"},
    {"OffsetsNull", one("F32", "[2]", "null"), 8, "tensor t: null"},
    {"ShapeOverflows", one("F32", "[4294967296,4294967296]", "[0,8]"), 8,
     "its shape [4294967296, 4294967296] overflows"},
    {"ShapeBytesOverflow", one("F64", "[2305843009213693952]", "[0,0]"), 0, "overflows"},
    {"ShapeMismatch", one("F32", "[3]", "[0,8]"), 8, "F32 [3] needs 12 bytes, but its data_offsets have 8"},
    {"DtypeMismatch", one("F16", "[2]", "[0,8]"), 8, "F16 [2] needs 4 bytes, but its data_offsets have 8"},
    {"HugeShapeTinyData", one("F32", "[1000000000]", "[0,8]"), 8, "needs 4000000000 bytes"},
    {"RankTooHigh", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 8 numbers"},
    {"DtypeUnknown", one("Q4", "[2]", "[0,8]"), 8, "unknown dtype \"Q4\""},
    {"DtypeNumber", R"({"t":{"dtype":1,"shape":[],"data_offsets":[0,4]}})", 4, "a number"},
    {"NoDtype", R"({"t":{"shape":[2],"data_offsets":[0,8]}})", 8, "tensor t has no dtype"},
    {"NoShape", R"({"t":{"dtype":"F32","data_offsets":[0,8]}})", 8, "tensor t has no shape"},
    {"NoOffsets", R"({"t":{"dtype":"F32","shape":[2]}})", 8, "tensor t has no data_offsets"},
    {"UnknownKey", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8, "unknown key \"x\""},
    {"ValueNotObject", R"({"t":[1]})", 0, "tensor t: an array"},
    {"KeyTwice", R"({"t":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8,
     "\"dtype\" occurs twice"},
    {"ShapeTwice", R"({"t":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8,
     "\"shape\" occurs twice"},
    {"TensorTwice",
     R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2, "tensor t occurs twice"},
    {"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0, "\"__metadata__\" occurs twice"},
    {"MetadataKeyTwice", R"({"__metadata__":{"a":"","a":""}})", 0, "\"a\" occurs twice"},
    {"MetadataNumber", R"({"__metadata__":{"a":1}})", 0, "a number"},
    {"Overlap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
     7, "but the tensors before it end at byte 4"},
    {"Gap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
     9, "1 bytes before tensor b belong to no tensor"},
    {"GapInFront", one("F32", "[2]", "[4,12]"), 12, "4 bytes before tensor t belong to no tensor"},
};

class SafetensorsBad : public testing::TestWithParam<Bad> {};

TEST_P(SafetensorsBad, IsRefused) {
  const Bad& bad = GetParam();
  EXPECT_THAT(error_of(file_of(bad.header, bad.data_bytes, bad.length)), HasSubstr(bad.message));
}

INSTANTIATE_TEST_SUITE_P(Table, SafetensorsBad, testing::ValuesIn(kBad),
                         [](const testing::TestParamInfo<Bad>& bad) { return bad.param.name; });

TEST(Safetensors, EveryTruncationIsAnError) {
  const auto file = file_of(one("F32", "[2]", "[0,8]"), 8);
  ASSERT_EQ(error_of(file), "accepted");
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_NE(error_of(std::span(file).first(n)), "accepted") << n;
  }
}

}  // namespace
}  // namespace octavo
