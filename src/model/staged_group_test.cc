// Tests with ranks that are threads, and that share one emulated device or GPU.
#include "model/staged_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

// A group whose arguments are in host memory: copies them to the device, calls the group of the device, and
// copies them back. So the checks of all groups apply.
class OverDevice {
 public:
  OverDevice(Backend& backend, ProcessGroup& group) : backend_(backend), group_(group) {}

  ProcessGroup& group() { return group_; }

  template <class T, class Operation>
  void on_device(std::span<T> values, const Operation& operation) {
    Buffer memory = backend_.device->allocate(values.size_bytes()).value();
    const View view = memory.view(DType::u8, {static_cast<std::int64_t>(values.size_bytes())});
    backend_.device->upload(*backend_.stream, view, values.data());
    operation(std::span<T>(reinterpret_cast<T*>(memory.data()), values.size()));
    backend_.device->download(*backend_.stream, values.data(), view);
    backend_.stream->synchronize();
  }

 private:
  Backend& backend_;
  ProcessGroup& group_;
};

void on_ranks(int size, const std::function<void(OverDevice&)>& body) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(size)).value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      SharedMemoryGroup host(memory.bytes(), {.rank = rank, .size = size, .check = {}, .spin = false});
      Backend backend = make_cuda_backend().value();
      StagedGroup group(backend, host);
      OverDevice over(backend, group);
      body(over);
      EXPECT_TRUE(group.status().has_value());
    });
}

float number(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) / static_cast<float>(i % 97 + 3);
}

TEST(StagedGroup, AddsInTheOrderOfRanks) {
  for (const int size : {1, 2, 3})
    on_ranks(size, [](OverDevice& over) {
      const int ranks = over.group().size();
      for (const std::size_t count : {1, 1000, 300'000}) {
        std::vector<float> values(count), expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = number(over.group().rank(), i);
          expected[i] = number(0, i);
          for (int rank = 1; rank < ranks; ++rank) expected[i] += number(rank, i);
        }
        over.on_device(std::span(values), [&](std::span<float> device) { over.group().all_reduce(device); });
        EXPECT_EQ(values, expected);
      }
    });
}

// Bytes outside of the parts keep their values.
TEST(StagedGroup, GathersPartsOfDifferentSizes) {
  on_ranks(3, [](OverDevice& over) {
    const std::vector<std::size_t> starts{2, 5, 5, 1000};
    for (const int to : {ProcessGroup::kEveryRank, 0, 2}) {
      const auto own = static_cast<std::size_t>(over.group().rank());
      std::vector<std::byte> all(1003, std::byte{99});
      std::fill(all.begin() + static_cast<std::ptrdiff_t>(starts[own]),
                all.begin() + static_cast<std::ptrdiff_t>(starts[own + 1]), static_cast<std::byte>(own));
      over.on_device(std::span(all),
                     [&](std::span<std::byte> device) { over.group().gather(device, starts, to); });
      if (to != ProcessGroup::kEveryRank && to != over.group().rank()) continue;
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(all[i], static_cast<std::byte>(i < 2 || i >= 1000 ? 99 : i < 5 ? 0 : 2)) << i;
    }
  });
}

TEST(StagedGroup, GathersTheColumnsOfAMatrix) {
  on_ranks(2, [](OverDevice& over) {
    const std::vector<std::size_t> starts{0, 3, 10};
    const std::byte own = over.group().rank() == 0 ? std::byte{1} : std::byte{2};
    std::vector<std::byte> rows(7 * 10, own);
    over.on_device(std::span(rows),
                   [&](std::span<std::byte> device) { over.group().gather_rows(device, 10, starts, 0); });
    for (std::size_t i = 0; i < rows.size() && over.group().rank() == 0; ++i)
      EXPECT_EQ(rows[i], i % 10 < 3 ? std::byte{1} : std::byte{2});
  });
}

TEST(StagedGroup, SendsTheMessageOfRank0) {
  on_ranks(2, [](OverDevice& over) {
    for (const std::size_t bytes : {7, 3 << 20, 16}) {
      std::vector<std::byte> message(bytes, over.group().rank() == 0 ? std::byte{42} : std::byte{0});
      over.on_device(std::span(message),
                     [&](std::span<std::byte> device) { over.group().broadcast(device); });
      EXPECT_EQ(message, std::vector<std::byte>(bytes, std::byte{42}));
    }
    std::vector<std::byte> in_host_memory(over.group().rank() == 0 ? 5 : 0);
    over.group().broadcast(in_host_memory);
    EXPECT_EQ(in_host_memory.size(), 5u);
    over.group().barrier();
  });
}

TEST(StagedGroup, GathersEqualParts) {
  on_ranks(3, [](OverDevice& over) {
    const auto own = static_cast<std::byte>(over.group().rank());
    std::vector<std::byte> mine(11, own), all(over.group().rank() == 1 ? 0 : 33);
    over.on_device(std::span(mine), [&](std::span<std::byte> mine_on_device) {
      over.on_device(std::span(all), [&](std::span<std::byte> all_on_device) {
        over.group().all_gather(mine_on_device, all_on_device);
      });
    });
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::byte>(i / 11));
  });
}

}  // namespace
}  // namespace octavo
