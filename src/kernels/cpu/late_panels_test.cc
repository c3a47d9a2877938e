// Matrices whose panels are written while they are in use.
#include "kernels/cpu/late_panels.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "kernels/testing/quant.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kCols = 1024;
// A file with the blocks of a matrix of two parts, which have different numbers of rows and encodings.
struct StoredMatrix {
  ScratchDirectory directory;
  std::shared_ptr<const MappedFile> file;
  std::vector<MatrixPart> parts;

  StoredMatrix(TestRandom& random, Encoding first, Encoding second)
      : StoredMatrix({random_blocks(random, first, random.integer(1, 150), kCols),
                      random_blocks(random, second, random.integer(1, 150), kCols)}) {}
  explicit StoredMatrix(const std::vector<TestPart>& own) {
    std::string bytes;
    for (const TestPart& part : own) bytes.append(part.bytes.begin(), part.bytes.end());
    directory.write("matrix", bytes);
    file = std::make_shared<const MappedFile>(MappedFile::open(path()).value());
    const std::byte* at = file->bytes().data();
    for (const TestPart& part : own) {
      parts.push_back(part.part());
      parts.back().values.data = const_cast<std::byte*>(at);
      at += part.bytes.size();
    }
  }
  std::string path() const { return (directory / "matrix").string(); }
};

// Returns the number of pages of `part` that are mapped into this process.
std::int64_t mapped_pages(std::span<const std::byte> part) {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(part.data()) / page;
  std::vector<std::uint64_t> entries(part.size() / page);
  // Streams read numbers of bytes that this file refuses.
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const std::size_t bytes = entries.size() * sizeof entries[0];
  EXPECT_EQ(pread(file, entries.data(), bytes, static_cast<off_t>(first * sizeof entries[0])),
            static_cast<ssize_t>(bytes));
  close(file);
  return std::ranges::count_if(entries, [](std::uint64_t entry) { return (entry & kPresent) != 0; });
}

struct Answers {
  std::vector<TestTensor> products;
  std::vector<float> rows;

  Answers(Backend& backend, const Weight& weight, const TestTensor& x) {
    for (const std::int64_t m : {1, 3, 17, 40, 230}) {
      products.emplace_back(DType::f32, std::vector{m, weight.rows()});
      backend.ops.matmul(*backend.stream,
                         {.x = x.view().rows(0, m), .w = weight, .y = products.back().view()});
    }
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < weight.rows(); ++i) ids.push_back(i);
    TestTensor out(DType::f32, {weight.rows(), kCols});
    backend.ops.embed(*backend.stream, {.ids = View::of(std::span(ids)), .table = weight, .out = out.view()});
    for (std::int64_t i = 0; i < out.elements(); ++i) rows.push_back(out[i]);
  }
  bool operator==(const Answers&) const = default;
};

class CpuLatePanels : public CpuBesideReference {
 protected:
  CpuStream& stream() { return cpu_stream(*cpu->stream); }
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuLatePanels, testing::ValuesIn(kCpuIsas),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(CpuLatePanels, GiveTheSameAnswersBeforeAndAfterTheyAreWritten) {
  TestRandom random(71);
  for (const Encoding encoding : kBlockEncodings) {
    const StoredMatrix stored(random, encoding, random.pick({Encoding::q8_0, Encoding::q4_k}));
    const MatrixSource source{stored.parts, DType::bf16};
    const WeightPtr now = cpu->ops.prepare(*cpu->device, source).value();
    const TestTensor x = random.tensor(DType::bf16, {230, kCols});
    const Answers expected(*cpu, *now, x);

    const auto late_matrix = [&] {
      std::unique_ptr<QuantWeight> weight = lay_out_quantised(stream(), source).value();
      EXPECT_TRUE(stream().reserve_scratch(weight->panel_bytes()));
      return weight;
    };
    {
      const auto late = late_matrix();
      const auto panels = late->write_late(stored.file);
      while (!panels->written())
        ASSERT_TRUE(Answers(*cpu, *late, x) == expected) << name(encoding) << ", written by products";
    }
    {
      const auto late = late_matrix();
      const auto panels = late->write_late(stored.file);
      // As another thread that is writing a panel for the rest of this block.
      const std::int64_t panel = random.integer(0, static_cast<int>(late->panels()) - 1);
      ASSERT_TRUE(panels->begin(panel));
      EXPECT_FALSE(panels->begin(panel));
      for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(Answers(*cpu, *late, x) == expected) << name(encoding) << ", partly written";
      EXPECT_FALSE(panels->written());
      EXPECT_GT(panels->unwritten_bytes(), 0U);
    }
    const auto late = late_matrix();
    const auto panels = late->write_late(stored.file);
    EXPECT_GT(panels->unwritten_bytes(), 0U);
    EXPECT_NE(panels->file(), nullptr);
    while (panels->write_some()) {
    }
    EXPECT_TRUE(panels->written());
    EXPECT_EQ(panels->unwritten_bytes(), 0U);
    EXPECT_EQ(panels->file(), nullptr);  // the file is not mapped for longer than necessary
    EXPECT_TRUE(Answers(*cpu, *late, x) == expected) << name(encoding) << ", written";
  }
}

TEST_P(CpuLatePanels, AreWrittenByTheDeviceOnceItMayStart) {
  TestRandom random(72);
  const StoredMatrix stored(random, Encoding::q4_0, Encoding::q8_0);
  const TestTensor x = random.tensor(DType::bf16, {230, kCols});
  const WeightPtr now = cpu->ops.prepare(*cpu->device, {stored.parts, DType::bf16}).value();
  const Answers expected(*cpu, *now, x);
  const WeightPtr late = cpu->ops.prepare(*cpu->device, {stored.parts, DType::bf16, stored.file}).value();
  LateWriter& writer = static_cast<CpuDevice&>(*cpu->device).late_writer();
  EXPECT_GT(writer.unwritten_bytes(), 0U);
  cpu->device->start_late_work();
  EXPECT_TRUE(Answers(*cpu, *late, x) == expected);  // written or not
  ASSERT_TRUE(eventually([&] { return writer.unwritten_bytes() == 0; }));
  EXPECT_TRUE(Answers(*cpu, *late, x) == expected);
}

// Products and the writer's threads write the same panels.
TEST_P(CpuLatePanels, MayBeWrittenByOtherThreadsDuringProducts) {
  TestRandom random(75);
  const StoredMatrix stored(random, Encoding::q8_0, Encoding::q4_k);
  const TestTensor x = random.tensor(DType::bf16, {230, kCols});
  const WeightPtr now = cpu->ops.prepare(*cpu->device, {stored.parts, DType::bf16}).value();
  const Answers expected(*cpu, *now, x);
  for (int i = 0; i < 20; ++i) {
    const auto late = lay_out_quantised(stream(), {stored.parts, DType::bf16}).value();
    ASSERT_TRUE(stream().reserve_scratch(late->panel_bytes()));
    const auto panels = late->write_late(stored.file);
    std::thread other([&] {
      while (panels->write_some()) {
      }
    });
    const Answers answers(*cpu, *late, x);
    other.join();
    ASSERT_TRUE(answers == expected);
    ASSERT_TRUE(panels->written());
  }
}

// The writer must not touch a matrix that is gone.
TEST_P(CpuLatePanels, MayBeDestroyedAtAnyTime) {
  TestRandom random(73);
  const StoredMatrix stored(random, Encoding::q8_0, Encoding::q4_0);
  for (int i = 0; i < 50; ++i) {
    const WeightPtr late = cpu->ops.prepare(*cpu->device, {stored.parts, DType::bf16, stored.file}).value();
    ASSERT_NE(late, nullptr);
    cpu->device->start_late_work();
  }
  EXPECT_EQ(static_cast<CpuDevice&>(*cpu->device).late_writer().unwritten_bytes(), 0U);
}

TEST(LatePanels, EndTheProcessIfTheFileIsChanged) {
  TestRandom random(76);
  Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const StoredMatrix stored(random, Encoding::q8_0, Encoding::q4_0);
  const auto late = lay_out_quantised(cpu_stream(*cpu.stream), {stored.parts, DType::bf16}).value();
  const auto panels = late->write_late(stored.file);
  const auto time = std::filesystem::last_write_time(stored.path());
  std::filesystem::last_write_time(stored.path(), time + std::chrono::hours(1));
  EXPECT_DEATH(
      {
        while (panels->write_some()) {
        }
      },
      "was changed");
}

// Several threads read a piece of the file, so pages may be read again after the piece was released.
TEST(LatePanels, ReleaseAlsoThePagesBeforeTheLastPiece) {
  TestRandom random(78);
  Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const StoredMatrix stored({random_blocks(random, Encoding::q8_0, 1024, kCols)});
  const auto late = lay_out_quantised(cpu_stream(*cpu.stream), {stored.parts, DType::bf16}).value();
  const auto panels = late->write_late(stored.file);
  const auto piece =
      stored.file->bytes().first(stored.file->bytes().size() / static_cast<std::size_t>(late->panels()) * 8);
  ASSERT_LT(2 * piece.size(), stored.file->bytes().size());
  ASSERT_TRUE(panels->write_some());
  ASSERT_NE(std::ranges::count(piece, std::byte{1}), 0);  // reads all pages
  EXPECT_GT(mapped_pages(piece), 8);
  ASSERT_TRUE(panels->write_some());
  EXPECT_EQ(mapped_pages(piece), 0);
}

// A file that another one replaces stays mapped.
TEST(LatePanels, AreThoseOfAReplacedFile) {
  TestRandom random(77);
  Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const StoredMatrix stored(random, Encoding::q8_0, Encoding::q4_0);
  const auto late = lay_out_quantised(cpu_stream(*cpu.stream), {stored.parts, DType::bf16}).value();
  const auto panels = late->write_late(stored.file);
  stored.directory.write("other", "text");
  std::filesystem::rename(stored.directory / "other", stored.path());
  while (panels->write_some()) {
  }
  EXPECT_TRUE(panels->written());
}

TEST(LatePanels, EndTheProcessIfTheFileIsShortened) {
  TestRandom random(74);
  Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const StoredMatrix stored(random, Encoding::q8_0, Encoding::q4_0);
  const auto late = lay_out_quantised(cpu_stream(*cpu.stream), {stored.parts, DType::bf16}).value();
  const auto panels = late->write_late(stored.file);
  std::filesystem::resize_file(stored.path(), 0);
  EXPECT_DEATH(
      {
        while (panels->write_some()) {
        }
      },
      "was shortened");
}

}  // namespace
}  // namespace octavo::cpu
