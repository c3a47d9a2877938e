#include "weights/packed_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>

#include "tensor/dequantize.h"
#include "weights/gguf_blocks.h"

namespace octavo {
namespace {

using testing::HasSubstr;

class File {
 public:
  template <class T>
  void add(const std::string& name, std::string_view format, std::vector<std::int64_t> shape,
           std::vector<T> values) {
    std::optional<DType> dtype;
    if (format == "F32") dtype = DType::f32;
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    memory_.push_back(std::move(bytes));
    tensors.push_back(
        {.name = name, .format = format, .dtype = dtype, .shape = std::move(shape), .bytes = memory_.back()});
  }
  StoredTensor& at(std::string_view name) { return *std::ranges::find(tensors, name, &StoredTensor::name); }
  void remove(std::string_view name) {
    std::erase_if(tensors, [&](const auto& t) { return t.name == name; });
  }
  template <class T>
  void put(std::string_view name, std::size_t i, T value) {
    const StoredTensor& t = at(name);
    std::memcpy(const_cast<std::byte*>(t.bytes.data()) + i * sizeof(T), &value, sizeof value);
  }

  std::vector<StoredTensor> tensors;

 private:
  std::deque<std::vector<std::byte>> memory_;
};

constexpr PackedFormat kGptq{.packing = Packing::gptq, .bits = 4, .group = 8, .zero_offset = 1};
constexpr PackedFormat kCompressed{.packing = Packing::compressed_tensors, .block_rows = 2, .block_cols = 2};

// A matrix of 8 rows and 16 columns, with two groups in each row. The code at column k is k / 8 + k % 8. The
// zero point of group g is 7 + g; the file stores it minus 1.
File gptq_file() {
  File file;
  file.add<std::uint32_t>("a.qweight", "I32", {2, 8}, std::vector<std::uint32_t>(16, 0x76543210));
  for (std::size_t i = 8; i < 16; ++i) file.put<std::uint32_t>("a.qweight", i, 0x87654321);
  file.add<std::uint32_t>("a.qzeros", "I32", {2, 1}, {0x66666666, 0x77777777});
  file.add<float>("a.scales", "F32", {2, 8}, std::vector<float>(16, 0.5f));
  file.add<std::int32_t>("a.g_idx", "I32", {16}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  return file;
}

File compressed_file() {
  File file;
  file.add<std::uint32_t>("a.weight_packed", "I32", {2, 2}, {0x98, 0, 0x98, 0});
  file.add<float>("a.weight_scale", "F32", {2, 2}, {1, 1, 1, 1});
  file.add<std::int64_t>("a.weight_shape", "I64", {2}, {2, 12});
  file.add<std::uint8_t>("b.weight", "F8_E4M3", {3, 4}, std::vector<std::uint8_t>(12, 0x38));
  file.add<float>("b.weight_scale", "F32", {2, 2}, {1, 2, 3, 4});
  file.add<std::int8_t>("c.weight", "I8", {2, 4}, {-128, -1, 0, 1, 2, 3, 4, 127});
  file.add<float>("c.weight_scale", "F32", {2, 1}, {1, 2});
  file.add<float>("c.input_scale", "F32", {1}, {1});
  file.add<float>("plain.weight", "F32", {1, 1}, {1});
  return file;
}

// DeepSeek-V4's format: an fp8 matrix in blocks, and an mxfp4 matrix. All scales are powers of two.
File deepseek_file() {
  File file;
  file.add<std::uint8_t>("a.weight", "F8_E4M3", {3, 4}, std::vector<std::uint8_t>(12, 0x38));
  file.add<std::uint8_t>("a.scale", "F8_E8M0", {2, 2}, {127, 128, 126, 0});
  std::vector<std::int8_t> codes(2 * 32, 0);
  codes[0] = 0x21;       // 0.5 and 1
  codes[16] = 0x0f;      // -6
  codes[32] = -0x60;     // 0 and -1 in the second row
  file.add<std::int8_t>("b.weight", "I8", {2, 32}, codes);
  file.add<std::uint8_t>("b.scale", "F8_E8M0", {2, 2}, {127, 128, 120, 127});
  return file;
}
constexpr PackedFormat kDeepseek{.packing = Packing::fp8, .block_rows = 2, .block_cols = 2};

std::vector<float> numbers(const StoredTensor& tensor) {
  ThreadPool pool(1);
  const auto made = unpack(tensor, pool);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  std::vector<float> all(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
  for (std::int64_t r = 0; made && r < tensor.shape[0]; ++r)
    dequantize(made->part, r, all.data() + r * tensor.shape[1]);
  return all;
}

TEST(PackedMatrix, Gptq) {
  File file = gptq_file();
  const auto tensors = join_packed(file.tensors, kGptq);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1u);
  const StoredTensor& a = tensors->front();
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_EQ(a.encoding, Encoding::int4);
  EXPECT_THAT(a.shape, testing::ElementsAre(8, 16));
  EXPECT_EQ(stored_bytes(a), 64u + 8 + 64 + 64);
  const auto all = numbers(a);
  for (std::size_t k = 0; k < 16; ++k)
    EXPECT_EQ(all[16 + k], 0.5f * (static_cast<float>(k / 8 + k % 8) - static_cast<float>(7 + k / 8))) << k;
}

TEST(PackedMatrix, GptqInAnyOrderOfColumns) {
  File file = gptq_file();
  file.put<std::int32_t>("a.g_idx", 3, 1);
  const auto tensors = join_packed(file.tensors, kGptq);
  ASSERT_TRUE(tensors.has_value());
  const auto all = numbers(tensors->front());
  EXPECT_EQ(all[2], 0.5f * (2 - 7));
  EXPECT_EQ(all[3], 0.5f * (3 - 8));
}

TEST(PackedMatrix, Fp8AndMxfp4OfDeepseek) {
  const File file = deepseek_file();
  const auto tensors = join_packed(file.tensors, kDeepseek);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_THAT(numbers(tensors->front()), testing::ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 0.5, 0.5, 0x1p-127F, 0x1p-127F));
  const StoredTensor& b = tensors->back();
  EXPECT_EQ(b.encoding, Encoding::mxfp4);
  EXPECT_THAT(b.shape, testing::ElementsAre(2, 64));
  const auto all = numbers(b);
  EXPECT_EQ(all[0], 0.5F);
  EXPECT_EQ(all[1], 1);
  EXPECT_EQ(all[32], -12);
  EXPECT_EQ(all[64], 0);
  EXPECT_EQ(all[65], -0x1p-7F);
}

// consolidated.safetensors has a scale for the matrix, and a scale for activations.
TEST(PackedMatrix, Fp8OfMistral) {
  File file;
  file.add<std::uint8_t>("a.weight", "F8_E4M3", {2, 3}, std::vector<std::uint8_t>(6, 0x38));
  file.add<float>("a.qscale_weight", "F32", {}, {0.5F});
  file.add<float>("a.qscale_act", "F32", {}, {2});
  const auto tensors =
      join_packed(file.tensors, {.packing = Packing::fp8, .activations = ActivationScheme::stored});
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_THAT(numbers(tensors->front()), testing::Each(0.5F));
  EXPECT_EQ(tensors->front().packed->activations, ActivationScheme::stored);
  EXPECT_EQ(number_at(tensors->front().packed->input_scale, 0), 2);
}

// The shapes are not multiples of the blocks in which unpack_codes() works.
TEST(PackedMatrix, CodesOfWordsAreTheItemsOfEachPlace) {
  struct Case {
    PackedFormat format;
    std::int64_t rows, cols;
  };
  constexpr PackedFormat kAwq{.packing = Packing::awq, .bits = 4, .group = 8};
  constexpr PackedFormat kBytes{.packing = Packing::gptq, .bits = 8, .group = 8};
  constexpr PackedFormat kWords{.packing = Packing::compressed_tensors};
  ThreadPool pool(2);
  for (const auto& [format, rows, cols] : {Case{kGptq, 8, 8}, Case{kGptq, 136, 208}, Case{kAwq, 264, 72},
                                           Case{kAwq, 8, 65}, Case{kBytes, 132, 76}, Case{kWords, 130, 70}}) {
    File file;
    const std::int64_t together = 32 / format.bits, groups = (cols + 7) / 8;
    std::vector<std::int64_t> shape{rows, (cols + 7) / 8};
    if (format.packing == Packing::gptq) shape = {cols / together, rows};
    if (format.packing == Packing::awq) shape = {cols, rows / 8};
    std::vector<std::uint32_t> words(static_cast<std::size_t>(shape[0] * shape[1]));
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<std::uint32_t>((i + 1) * 2654435761u);
    file.add(format.packing == Packing::compressed_tensors ? "a.weight_packed" : "a.qweight", "I32", shape,
             words);
    if (format.packing == Packing::compressed_tensors) {
      file.add<std::int64_t>("a.weight_shape", "I64", {2}, {rows, cols});
      file.add<float>("a.weight_scale", "F32", {rows, 1},
                      std::vector<float>(static_cast<std::size_t>(rows), 1));
    } else {
      const std::int64_t zeros = groups * ((rows + together - 1) / together);
      file.add<float>("a.scales", "F32", {groups, rows},
                      std::vector<float>(static_cast<std::size_t>(groups * rows), 1));
      file.add<std::int32_t>("a.qzeros", "I32", {groups, zeros / groups},
                             std::vector<std::int32_t>(static_cast<std::size_t>(zeros), 0));
    }
    const auto tensors = join_packed(file.tensors, format);
    ASSERT_TRUE(tensors) << tensors.error().message;
    const StoredTensor& joined = tensors->at(0);
    ASSERT_THAT(joined.shape, testing::ElementsAre(rows, cols));
    const auto matrix = unpack(joined, pool);
    ASSERT_TRUE(matrix) << matrix.error().message;
    const auto* codes = static_cast<const std::uint8_t*>(matrix->codes.data());
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = 0; col < cols; ++col)
        ASSERT_EQ(codes[row * cols + col], joined.packed->code_items.at(joined.packed->codes.bytes, row, col))
            << row << ", " << col << " of " << rows << " x " << cols;
  }
}

TEST(PackedMatrix, CompressedTensorsBesidePlainOnes) {
  File file = compressed_file();
  const auto tensors = join_packed(file.tensors, kCompressed);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_THAT(numbers((*tensors)[0]), testing::Contains(-8).Times(20));
  EXPECT_EQ(numbers((*tensors)[0])[0], 0);
  EXPECT_EQ(numbers((*tensors)[0])[13], 1);
  EXPECT_THAT(numbers((*tensors)[1]), testing::ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(numbers((*tensors)[2]), testing::ElementsAre(-128, -1, 0, 1, 4, 6, 8, 254));
  EXPECT_TRUE((*tensors)[3].plain());
}

// Two matrices, each with one row and two groups.
File mxfp4_file() {
  File file;
  std::vector<std::uint8_t> codes(2 * 2 * 16, 0);
  codes[0] = 0x21;       // 0.5 and 1
  codes[16] = 0x0f;      // -6
  codes[32 + 1] = 0xa0;  // columns 2 and 3 of the second matrix: 0 and -1
  file.add<std::uint8_t>("a_blocks", "U8", {2, 1, 2, 16}, codes);
  file.add<std::uint8_t>("a_scales", "U8", {2, 1, 2}, {127, 128, 120, 127});
  return file;
}
constexpr PackedFormat kMxfp4{.packing = Packing::mxfp4};

TEST(PackedMatrix, Mxfp4IsAStackOfCodesWithExponents) {
  const File file = mxfp4_file();
  const auto tensors = join_packed(file.tensors, kMxfp4);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ(tensors->front().name, "a");
  EXPECT_EQ(tensors->front().shape, (std::vector<std::int64_t>{2, 1, 64}));
  const auto first = numbers(slice_of(tensors->front(), 0)), second = numbers(slice_of(tensors->front(), 1));
  EXPECT_EQ(first[0], 0.5f);
  EXPECT_EQ(first[1], 1);
  EXPECT_EQ(first[2], 0);
  EXPECT_EQ(first[32], -12);
  EXPECT_EQ(second[2], 0);
  EXPECT_EQ(second[3], -0x1p-7f);
}

// A row with two groups. The groups' scales are 1 and 0.5; the global scale doubles them.
File nvfp4_file(bool modelopt) {
  File file;
  std::vector<std::uint8_t> codes(16, 0);
  codes[0] = 0x21;  // 0.5 and 1
  codes[8] = 0xf7;  // 6 and -6
  file.add<std::uint8_t>(modelopt ? "a.weight" : "a.weight_packed", "U8", {1, 16}, codes);
  file.add<std::uint8_t>("a.weight_scale", "F8_E4M3", {1, 2}, {0x38, 0x30});
  if (modelopt)
    file.add<float>("a.weight_scale_2", "F32", {}, {2});
  else
    file.add<float>("a.weight_global_scale", "F32", {1}, {0.5F});
  file.add<float>(modelopt ? "a.input_scale" : "a.input_global_scale", "F32", {1}, {1});
  return file;
}
constexpr PackedFormat kModelopt{.packing = Packing::modelopt};

TEST(PackedMatrix, Nvfp4HasScalesOfSixteenColumnsAndOneOfAll) {
  for (const bool modelopt : {false, true}) {
    const File file = nvfp4_file(modelopt);
    const auto tensors = join_packed(file.tensors, modelopt ? kModelopt : kCompressed);
    ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
    ASSERT_EQ(tensors->size(), 1u);
    EXPECT_EQ(tensors->front().name, "a.weight");
    EXPECT_EQ(tensors->front().shape, (std::vector<std::int64_t>{1, 32}));
    std::vector<float> expected(32, 0.0F);
    expected[0] = 1;
    expected[1] = 2;
    expected[16] = 6;
    expected[17] = -6;
    EXPECT_THAT(numbers(tensors->front()), testing::ElementsAreArray(expected));
  }
}

// Two matrices, each with one row and two blocks. A block has an exponent and sixteen bytes.
TEST(PackedMatrix, BlocksOfGgufAreAStackOfCodesWithExponents) {
  std::vector<std::uint8_t> bytes(4 * 17, 0);
  for (const std::size_t block : {0, 1, 2, 3}) bytes[block * 17] = 127;
  bytes[1] = 0x21;               // columns 0 and 16 of the first matrix: 0.5 and 1
  bytes[17] = 128;               // exponent of the first matrix's second block
  bytes[17 + 16] = 0xf0;         // columns 47 and 63 of the first matrix: 0 and -6
  bytes[3 * 17 + 1 + 4] = 0x0a;  // column 36 of the second matrix: -1
  const auto matrices = [&] {
    return matrix_of_blocks(
        {.name = "a", .format = "MXFP4", .shape = {2, 1, 64}, .bytes = std::as_bytes(std::span(bytes))},
        kMxfp4Blocks);
  };
  const StoredTensor joined = matrices();
  EXPECT_EQ(joined.shape, (std::vector<std::int64_t>{2, 1, 64}));
  EXPECT_EQ(stored_bytes(joined), bytes.size());
  std::vector<float> first(64, 0.0F), second(64, 0.0F);
  first[0] = 0.5F;
  first[16] = 1;
  first[63] = -12;
  second[36] = -1;
  EXPECT_THAT(numbers(slice_of(joined, 0)), testing::ElementsAreArray(first));
  EXPECT_THAT(numbers(slice_of(joined, 1)), testing::ElementsAreArray(second));
  EXPECT_EQ(joined.packed->code_items.at(joined.packed->codes.bytes, 0, 16), 2);

  bytes[2 * 17] = 255;
  ThreadPool pool(1);
  EXPECT_TRUE(unpack(slice_of(matrices(), 0), pool).has_value());
  const auto nan = unpack(slice_of(matrices(), 1), pool);
  ASSERT_FALSE(nan.has_value());
  EXPECT_EQ(nan.error().message, "tensor a contains NaN");
}

struct Damage {
  const char* name;
  File (*file)();
  PackedFormat format;
  std::function<void(File&)> damage;
  const char* message;
};

const Damage kDamages[] = {
    {"NoScales", gptq_file, kGptq, [](File& f) { f.remove("a.scales"); }, "tensor a.scales is missing"},
    {"NoZeros", gptq_file, kGptq, [](File& f) { f.remove("a.qzeros"); }, "tensor a.qzeros is missing"},
    {"OtherGroup",
     gptq_file,
     {.packing = Packing::gptq, .bits = 4, .group = 4},
     [](File&) {},
     "tensor a.scales has shape [2, 8], but quantization_config requires [4, 8]"},
    {"OtherBits",
     gptq_file,
     {.packing = Packing::gptq, .bits = 8, .group = 4},
     [](File&) {},
     "tensor a.qzeros has shape [2, 1], but quantization_config requires [2, 2]"},
    {"WordsOfBytes", gptq_file, kGptq, [](File& f) { f.at("a.qweight").format = "U8"; },
     "tensor a.qweight is U8, but must be I32"},
    {"ScalesOfWords", gptq_file, kGptq,
     [](File& f) {
       f.at("a.scales").format = "I32";
       f.at("a.scales").dtype = DType::i32;
     },
     "tensor a.scales is I32, but scales must be F32, F16 or BF16"},
    {"ThreeDimensions", gptq_file, kGptq, [](File& f) { f.at("a.qweight").shape = {2, 2, 4}; },
     "tensor a.qweight has 3 dimensions"},
    {"AlsoPlain", gptq_file, kGptq, [](File& f) { f.add<float>("a.weight", "F32", {1, 1}, {1}); },
     "tensors a.weight and a.qweight both exist: the checkpoint must have only one of them"},
    {"ShortIndex", gptq_file, kGptq, [](File& f) { f.at("a.g_idx").shape = {8}; },
     "tensor a.g_idx has shape [8], but quantization_config requires [16]"},
    {"NoSuchGroup", gptq_file, kGptq, [](File& f) { f.put<std::int32_t>("a.g_idx", 5, 2); },
     "tensor a.g_idx has group 2, but only 2 groups exist"},
    {"NegativeGroup", gptq_file, kGptq, [](File& f) { f.put<std::int32_t>("a.g_idx", 5, -1); },
     "tensor a.g_idx has group -1"},
    {"NanScale", gptq_file, kGptq,
     [](File& f) { f.put("a.scales", 5, std::numeric_limits<float>::quiet_NaN()); },
     "tensor a.scales contains NaN or infinity"},
    {"NoShape", compressed_file, kCompressed, [](File& f) { f.remove("a.weight_shape"); },
     "tensor a.weight_shape is missing"},
    {"NegativeShape", compressed_file, kCompressed,
     [](File& f) { f.put<std::int64_t>("a.weight_shape", 1, -12); }, "tensor a.weight_shape has shape [-12]"},
    {"HugeShape", compressed_file, kCompressed,
     [](File& f) { f.put<std::int64_t>("a.weight_shape", 0, std::int64_t{1} << 62); },
     "tensor a.weight_shape has shape [4611686018427387904]"},
    {"OtherShape", compressed_file, kCompressed,
     [](File& f) { f.put<std::int64_t>("a.weight_shape", 1, 40); },
     "tensor a.weight_packed has shape [2, 2], but quantization_config requires [2, 10]"},
    {"GroupsThatDoNotDivide", compressed_file, kCompressed,
     [](File& f) { f.put<std::int64_t>("a.weight_shape", 1, 13); }, "tensor a.weight_scale has shape [2, 2]"},
    {"OtherBlocks",
     compressed_file,
     {.packing = Packing::fp8, .block_rows = 2, .block_cols = 3},
     [](File& f) {
       for (const char* name : {"a.weight_packed", "c.weight"}) f.remove(name);
       f.at("b.weight").shape = {3, 7};
     },
     "tensor b.weight_scale has shape [2, 2], but quantization_config requires [2, 3]"},
    // If one dimension is 0, the other one can have any size although the tensor has no bytes.
    {"ZeroExtent", gptq_file, kGptq,
     [](File& f) {
       f.at("a.qweight").shape = {0, std::int64_t{1} << 62};
       f.at("a.qweight").bytes = {};
     },
     "tensor a.qweight has shape [0, 4611686018427387904], but each dimension must be in [1, 2147483648]"},
    {"ZeroExtentOfScales", compressed_file, kCompressed,
     [](File& f) {
       f.at("a.weight_scale").shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
       f.at("a.weight_scale").bytes = {};
     },
     "tensor a.weight_scale has shape [1099511627776, 1099511627776, 0]"},
    {"LastCodeNan",
     [] {
       File file;
       file.add<std::uint8_t>("b.weight", "F8_E4M3", {3, 200}, std::vector<std::uint8_t>(600, 0x38));
       file.add<float>("b.weight_scale", "F32", {1}, {1});
       return file;
     },
     {.packing = Packing::fp8},
     [](File& f) { f.put<std::uint8_t>("b.weight", 599, 0x7f); },
     "tensor b.weight contains NaN in fp8"},
    {"NanCode", compressed_file, kCompressed, [](File& f) { f.put<std::uint8_t>("b.weight", 3, 0xff); },
     "tensor b.weight contains NaN in fp8"},
    {"NoExponents", mxfp4_file, kMxfp4, [](File& f) { f.remove("a_scales"); }, "tensor a_scales is missing"},
    {"FewExponents", mxfp4_file, kMxfp4, [](File& f) { f.at("a_scales").shape = {2, 2, 1}; },
     "tensor a_scales has shape [2, 2, 1], but quantization_config requires [2, 1, 2]"},
    {"OtherGroups", mxfp4_file, kMxfp4, [](File& f) { f.at("a_blocks").shape = {2, 1, 4, 8}; },
     "tensor a_blocks has shape [2, 1, 4, 8], but mxfp4 needs"},
    {"NanExponent", mxfp4_file, kMxfp4, [](File& f) { f.put<std::uint8_t>("a_scales", 1, 255); },
     "tensor a_scales contains NaN"},
    {"PowersOfTwoOfIntegers", deepseek_file, kCompressed, [](File&) {}, "tensor a.scale is F8_E8M0"},
    {"NanInBlocks", deepseek_file, kDeepseek, [](File& f) { f.put<std::uint8_t>("a.scale", 3, 255); },
     "tensor a.scale contains NaN"},
    {"NoExponentsOfExperts", deepseek_file, kDeepseek, [](File& f) { f.remove("b.scale"); },
     "tensor b.scale is missing"},
    {"FewExponentsOfExperts", deepseek_file, kDeepseek, [](File& f) { f.at("b.scale").shape = {4, 1}; },
     "tensor b.scale has shape [4, 1], but quantization_config requires [2, 2]"},
    {"NarrowExperts", deepseek_file, kDeepseek, [](File& f) { f.at("b.weight").shape = {4, 8}; },
     "tensor b.weight: mxfp4 needs groups of 32 columns, got 16"},
    {"NoGlobalScale", [] { return nvfp4_file(false); }, kCompressed,
     [](File& f) { f.remove("a.weight_global_scale"); }, "tensor a.weight_global_scale is missing"},
    {"GlobalScaleOfNone", [] { return nvfp4_file(false); }, kCompressed,
     [](File& f) { f.put<float>("a.weight_global_scale", 0, 0); }, "tensor a.weight_global_scale is 0"},
    {"NanInScales", [] { return nvfp4_file(true); }, kModelopt,
     [](File& f) { f.put<std::uint8_t>("a.weight_scale", 1, 0x7f); }, "tensor a.weight_scale contains NaN"},
    {"FewScales", [] { return nvfp4_file(true); }, kModelopt,
     [](File& f) { f.at("a.weight_scale").shape = {2, 1}; },
     "tensor a.weight_scale has shape [2, 1], but quantization_config requires [1, 2]"},
    {"OtherScales", [] { return nvfp4_file(true); }, kModelopt,
     [](File& f) { f.at("a.weight_scale").format = "U8"; }, "scales of nvfp4 must be F8_E4M3"},
    {"IntegersInFp8",
     compressed_file,
     {.packing = Packing::fp8},
     [](File& f) {
       f.remove("a.weight_packed");
       f.remove("b.weight");
     },
     "tensor c.scale is missing"},
};

class PackedMatrixDamage : public testing::TestWithParam<Damage> {};

TEST_P(PackedMatrixDamage, IsRefused) {
  const Damage& damage = GetParam();
  File file = damage.file();
  damage.damage(file);
  const auto tensors = join_packed(file.tensors, damage.format);
  std::string message = tensors ? "" : tensors.error().message;
  ThreadPool pool(1);
  for (std::size_t i = 0; tensors && i < tensors->size(); ++i) {
    const StoredTensor& tensor = (*tensors)[i];
    if (!tensor.packed) continue;
    const bool stack = tensor.shape.size() == 3;
    for (std::int64_t e = 0; e < (stack ? tensor.shape[0] : 1); ++e)
      if (const auto made = unpack(stack ? slice_of(tensor, e) : tensor, pool); !made) message += made.error().message;
  }
  EXPECT_THAT(message, HasSubstr(damage.message));
}

INSTANTIATE_TEST_SUITE_P(Table, PackedMatrixDamage, testing::ValuesIn(kDamages),
                         [](const testing::TestParamInfo<Damage>& damage) { return damage.param.name; });

TEST(PackedMatrix, EightBitZeroBeyondAByte) {
  File file;
  file.add<std::uint32_t>("a.qweight", "I32", {1, 4}, {0, 0, 0, 0});
  file.add<std::uint32_t>("a.qzeros", "I32", {1, 1}, {0xff000000});
  file.add<float>("a.scales", "F32", {1, 4}, {1, 1, 1, 1});
  const auto tensors = join_packed(file.tensors, {.packing = Packing::gptq, .bits = 8, .zero_offset = 1});
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ThreadPool pool(1);
  const auto made = unpack(tensors->front(), pool);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("tensor a.qzeros has a zero point of 256"));
}

}  // namespace
}  // namespace octavo
