#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "tensor/buffer.h"
#include "tensor/mapped_file.h"
#include "tensor/view.h"

namespace octavo {
namespace {

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 x{static_cast<std::uint16_t>(bits)};
    const float wide = to_f32(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_f32(to_f16(wide))));
    } else {
      EXPECT_EQ(to_f16(wide).bits, x.bits) << bits;
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(to_f16(1.0f + 0x1p-11f).bits, 0x3c00);      // tie to even, down
  EXPECT_EQ(to_f16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);  // tie to even, up
  EXPECT_EQ(to_f16(65519.0f).bits, 0x7bff);             // rounds down to the largest f16, 65504
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);             // infinity
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0x0000);             // tie to even below the smallest subnormal
  EXPECT_EQ(to_f16(-0x1.8p-24f).bits, 0x8002);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_f32(to_bf16(-std::numeric_limits<float>::infinity())),
            -std::numeric_limits<float>::infinity());
}

TEST(View, StridesRowsAndContiguity) {
  std::array<float, 24> data{};
  View v = View::of(data.data(), DType::f32, {2, 3, 4});
  EXPECT_EQ(v.stride[0], 12);
  EXPECT_EQ(v.elements(), 24);
  EXPECT_TRUE(v.contiguous());
  const View second = v.rows(1, 1);
  EXPECT_EQ(second.as<float>(), data.data() + 12);
  v.shape[2] = 2;
  EXPECT_FALSE(v.contiguous());
}

TEST(Buffer, IsZeroedAndMovable) {
  Buffer a = allocate_host(std::size_t{5} << 20).value();
  EXPECT_EQ(static_cast<const char*>(a.data())[12345], 0);
  const Buffer b = std::move(a);
  EXPECT_EQ(b.view(DType::f32, {16, 16}).elements(), 256);
}

// Threads free the buffers of many chunks in an order that differs from the allocation order.
TEST(Buffer, PackedBuffersAreZeroedAlignedAndApart) {
  std::vector<std::thread> threads;
  for (unsigned char mark = 1; mark <= 3; ++mark)
    threads.emplace_back([mark] {
      std::vector<Buffer> buffers;
      for (std::size_t i = 0; i < 40; ++i) {
        const std::size_t bytes = i % 5 == 0 ? std::size_t{9} << 20 : 1 + i * 3000;
        Buffer& b = buffers.emplace_back(allocate_host_packed(bytes).value());
        auto* data = static_cast<unsigned char*>(b.data());
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data) % 4096, 0u);
        ASSERT_EQ(std::count(data, data + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
        std::fill_n(data, bytes, mark);
      }
      for (std::size_t i = 0; i < buffers.size(); i += 2) buffers[i] = Buffer{};
      for (const Buffer& b : buffers) {
        const auto* data = static_cast<const unsigned char*>(b.data());
        ASSERT_EQ(std::count(data, data + b.bytes(), mark), static_cast<std::ptrdiff_t>(b.bytes()));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocate_host_packed(0).value().bytes(), 0u);
  EXPECT_FALSE(allocate_host_packed(std::size_t{1} << 60).has_value());
}

TEST(Buffer, WhatIsFreedBesideOthersGoesBackToTheSystem) {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kPage = 4096;
  Buffer goes = allocate_host_packed(kBytes).value();
  const Buffer stays = allocate_host_packed(kPage).value();
  std::memset(goes.data(), 7, kBytes);
  std::memset(stays.data(), 7, kPage);
  void* data = goes.data();
  const auto resident = [&] {
    std::vector<unsigned char> pages(kBytes / kPage);
    EXPECT_EQ(mincore(data, kBytes, pages.data()), 0);
    return std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; });
  };
  EXPECT_EQ(resident(), std::ptrdiff_t{kBytes / kPage});
  goes = Buffer{};
  EXPECT_EQ(resident(), 0);
  EXPECT_EQ(static_cast<const unsigned char*>(stays.data())[kPage - 1], 7);
}

// Without a handler, the first read after the new end of the file would end the process.
TEST(MappedFile, AFileThatIsCutIsAnErrorAndNotTheEnd) {
  const ScratchDirectory directory;
  const std::string path = directory / "cut";
  directory.write("cut", std::string(5 * 4096 + 7, 'x'));
  {
    const MappedFile file = MappedFile::open(path).value();
    EXPECT_TRUE(file.intact().has_value());
    std::filesystem::resize_file(path, 4096);
    EXPECT_EQ(file.bytes()[4095], std::byte{'x'});
    EXPECT_TRUE(file.intact().has_value());
    EXPECT_EQ(std::ranges::count(file.bytes().subspan(std::size_t{3} * 4096), std::byte{0}), 2 * 4096 + 7);
    EXPECT_EQ(file.bytes()[4095], std::byte{'x'});
    const auto intact = file.intact();
    ASSERT_FALSE(intact.has_value());
    EXPECT_EQ(intact.error().code, ErrorCode::io);
    EXPECT_NE(intact.error().message.find(path + " was shortened"), std::string::npos);
  }
  EXPECT_TRUE(MappedFile::open(path).value().intact().has_value());
}

TEST(MappedFile, PrefetchedPagesAreReadFromTheDisk) {
  const ScratchDirectory directory;
  const std::string path = directory / "weights";
  directory.write("weights", std::string(1 << 20, 'w'));
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  const MappedFile file = MappedFile::open(path).value();
  file.prefetch(file.bytes());
  EXPECT_TRUE(eventually([&] {
    std::vector<unsigned char> cached(file.bytes().size() / 4096);
    mincore(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), cached.data());
    return std::ranges::all_of(cached, [](unsigned char page) { return page & 1; });
  }));
}

TEST(MappedFile, ReadsAndReportsMissingFiles) {
  const ScratchDirectory directory;
  const auto path = directory / "file";
  directory.write("file", "hello");
  const MappedFile file = MappedFile::open(path).value();
  EXPECT_EQ(file.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(file.bytes()[1]), 'e');
  file.release(file.bytes());
  EXPECT_EQ(static_cast<char>(file.bytes()[4]), 'o');
  std::filesystem::remove(path);
  EXPECT_EQ(MappedFile::open(path).error().code, ErrorCode::not_found);
  EXPECT_EQ(MappedFile::open(directory.path()).error().code, ErrorCode::io);
}

TEST(Float8, EveryNumberSurvivesAndRoundsToNearest) {
  std::vector<float> numbers;
  for (int bits = 0; bits < 0x7f; ++bits)
    numbers.push_back(to_f32(Float8E4M3{static_cast<std::uint8_t>(bits)}));
  EXPECT_EQ(numbers[1], 0x1p-9f);
  EXPECT_EQ(numbers[8], 0x1p-6f);
  EXPECT_EQ(numbers[0x38], 1.0f);
  EXPECT_EQ(numbers.back(), 448.0f);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(to_f8_e4m3(numbers[i]).bits, i);
    EXPECT_EQ(to_f8_e4m3(-numbers[i]).bits, i | 0x80);
    if (i == 0) continue;
    const float middle = (numbers[i - 1] + numbers[i]) / 2;
    EXPECT_EQ(to_f8_e4m3(std::nextafter(middle, 0.0f)).bits, i - 1);
    EXPECT_EQ(to_f8_e4m3(std::nextafter(middle, 1e9f)).bits, i);
    EXPECT_EQ(to_f8_e4m3(middle).bits, i % 2 == 0 ? i : i - 1);
  }
  EXPECT_EQ(to_f8_e4m3(1e30f).bits, 0x7e);
  EXPECT_EQ(to_f8_e4m3(-HUGE_VALF).bits, 0xfe);
  EXPECT_TRUE(std::isnan(to_f32(to_f8_e4m3(std::nanf("")))));
}

}  // namespace
}  // namespace octavo
