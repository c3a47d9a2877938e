#include "weights/converted_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "kernels/cpu/cpu.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr Hash128 kKey{.low = 3, .high = 4};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ConvertedWeightsTest : public CpuBesideReference {
 protected:
  void prepare(const TestPart& part, DType activation) {
    const MatrixPart parts[] = {part.part()};
    add(cpu->ops.prepare(*cpu->device, {.parts = parts, .activation = activation}));
  }
  void prepare(const TestTensor& values, DType activation) {
    const MatrixPart parts[] = {{.values = values.view()}};
    add(cpu->ops.prepare(*cpu->device, {.parts = parts, .activation = activation}));
  }
  void add(Result<WeightPtr> weight) {
    ASSERT_TRUE(weight) << weight.error().message;
    weights.push_back(*std::move(weight));
    named.push_back({.name = 100 + weights.size(), .weight = weights.back().get()});
  }
  // A matrix of each type and, at the end, one that is larger than a huge page.
  void prepare_all() {
    TestRandom random(91);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      prepare(random.tensor(dtype, {random.integer(1, 99), 96}),
              dtype == DType::bf16 ? DType::bf16 : DType::f32);
    for (const Encoding encoding : kQuantisedEncodings)
      prepare(random_part(random, encoding, random.integer(1, 99), 512), DType::bf16);
    prepare(random_codes(random, Encoding::fp8, 70, 256, 2, false), DType::bf16);
    prepare(random.tensor(DType::bf16, {3000, 1024}), DType::bf16);
  }
  void write() {
    ConvertedWeightsWriter writer(path, kKey, named);
    writer.start();
    ASSERT_TRUE(eventually([&] { return fs::exists(path); }));
  }
  Error error_of_open(Hash128 key = kKey) {
    const auto opened = ConvertedWeights::open(path, key);
    return opened ? Error{ErrorCode::internal, "opened", {}} : opened.error();
  }
  // Returns the names of the files that are not complete.
  std::vector<fs::path> unfinished() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(directory.path()))
      if (entry.path().extension() == kUnfinishedWeights) files.push_back(entry.path());
    return files;
  }

  ScratchDirectory directory;
  const std::string path = (directory / "x.octavo-weights").string();
  std::vector<WeightPtr> weights;
  std::vector<NamedWeight> named;
};

INSTANTIATE_TEST_SUITE_P(Isa, ConvertedWeightsTest, testing::ValuesIn(kCpuIsas),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(ConvertedWeightsTest, AreTheSameMatrices) {
  prepare_all();
  write();
  EXPECT_TRUE(unfinished().empty());
  const auto file = ConvertedWeights::open(path, kKey).value();
  TestRandom random(92);
  for (const NamedWeight& one : named) {
    ASSERT_FALSE(file->at_end());
    const auto read = file->next(*cpu->device, one.name);
    ASSERT_TRUE(read) << read.error().message;
    const WeightMemory before = memory_of(*one.weight), after = memory_of(**read);
    EXPECT_EQ(before.layout, after.layout);
    EXPECT_EQ(before.format(), after.format());
    EXPECT_EQ((*read)->bytes(), one.weight->bytes());
    ASSERT_EQ(before.pieces.size(), after.pieces.size());
    for (std::size_t i = 0; i < before.pieces.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(before.pieces[i], after.pieces[i]));
    const TestTensor x = random.tensor((*read)->activation(), {5, (*read)->cols()});
    TestTensor y(DType::f32, {5, (*read)->rows()}), expected = y;
    cpu->ops.matmul(*cpu->stream, {.x = x.view(), .w = **read, .y = y.view()});
    cpu->ops.matmul(*cpu->stream, {.x = x.view(), .w = *one.weight, .y = expected.view()});
    EXPECT_TRUE(y == expected);
  }
  EXPECT_TRUE(file->at_end());
  EXPECT_EQ(file->next(*cpu->device, 1).error().code, ErrorCode::corrupt);
}

// The system counts the pages of a mapped file as available memory, although the model needs them.
TEST_P(ConvertedWeightsTest, AreNotAvailableMemory) {
  TestRandom random(93);
  prepare(random.tensor(DType::bf16, {64, 64}), DType::bf16);
  write();
  const auto file = ConvertedWeights::open(path, kKey).value();
  auto other = make_cpu_backend({.threads = 1, .isa = GetParam()}).value();
  ASSERT_TRUE(file->next(*other.device, named[0].name));
  const auto all = static_cast<std::int64_t>(HostDevice("all").available_bytes());
  ASSERT_GT(all, 0);
  constexpr std::int64_t kOthers = std::int64_t{1} << 40;  // other programs change the available memory
  static_cast<cpu::CpuDevice&>(*other.device).add_mapped(static_cast<std::size_t>(all + kOthers));
  EXPECT_EQ(other.device->available_bytes(), 1U);
}

TEST_P(ConvertedWeightsTest, HaveTheKeyAndTheNamesOfTheirModel) {
  TestRandom random(94);
  prepare(random.tensor(DType::f32, {8, 64}), DType::f32);
  EXPECT_EQ(error_of_open().code, ErrorCode::not_found);
  write();
  EXPECT_EQ(error_of_open({.low = 3, .high = 5}).code, ErrorCode::corrupt);
  const auto file = ConvertedWeights::open(path, kKey).value();
  EXPECT_EQ(file->next(*cpu->device, named[0].name + 1).error().code, ErrorCode::corrupt);
}

TEST_P(ConvertedWeightsTest, MayBeDamaged) {
  TestRandom random(95);
  prepare(random.tensor(DType::f32, {8, 64}), DType::f32);
  write();
  const std::string whole = read_file(path);
  for (const std::size_t bit : {0, 64, 200, 500}) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1);
    directory.write("x.octavo-weights", damaged);
    EXPECT_EQ(error_of_open().code, ErrorCode::corrupt) << bit;
  }
  directory.write("x.octavo-weights", whole.substr(0, 10));
  EXPECT_EQ(error_of_open().code, ErrorCode::corrupt);
  directory.write("x.octavo-weights", whole.substr(0, whole.size() - 4096));
  const auto file = ConvertedWeights::open(path, kKey).value();
  EXPECT_EQ(file->next(*cpu->device, named[0].name).error().code, ErrorCode::corrupt);
}

TEST_P(ConvertedWeightsTest, AreContinuedByTheNextWriter) {
  prepare_all();
  write();
  const std::string whole = read_file(path);
  constexpr std::size_t kWindow = std::size_t{2} << 20;
  ASSERT_GT(whole.size(), 3 * kWindow);
  // The first writer ends when it is destroyed. It may have written nothing, or everything.
  fs::remove(path);
  {
    ConvertedWeightsWriter(path, kKey, named).start();
  }
  if (!fs::exists(path)) write();
  EXPECT_TRUE(read_file(path) == whole);
  // Data that an earlier writer wrote stays. The last bytes before its end may be incomplete.
  fs::remove(path);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string begun = whole.substr(0, 2 * kWindow + 100);
  begun[kWindow + 5] = 'a';
  begun[2 * kWindow + 5] = static_cast<char>(~whole[2 * kWindow + 5]);
  directory.write("x.octavo-weights." + boot + ".octavo-part", begun);
  write();
  std::string expected = whole;
  expected[kWindow + 5] = 'a';
  EXPECT_TRUE(read_file(path) == expected);
}

}  // namespace
}  // namespace octavo
