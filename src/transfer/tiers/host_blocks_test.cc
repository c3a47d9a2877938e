#include "transfer/tiers/host_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kBytes = 5000;

Hash128 key(int i) {
  return {static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15, static_cast<std::uint64_t>(i)};
}

struct Host {
  std::size_t allocated = 0;
  std::unique_ptr<HostBlocks> blocks;

  explicit Host(std::int64_t bytes, EvictionPolicy policy = EvictionPolicy::lru) {
    blocks = HostBlocks::open(kBytes, bytes, policy, 0, [this](std::size_t wanted) {
               allocated += wanted;
               return allocate_host(wanted);
             }).value();
  }
  void put(int i) {
    EXPECT_TRUE(blocks->write(key(i), [&](std::span<std::byte> contents) {
      std::ranges::fill(contents, static_cast<std::byte>(i));
    }));
  }
  // Returns true if the block is stored, and checks its contents.
  bool get(int i) {
    return blocks
        ->read(key(i),
               [&](std::span<const std::byte> contents) {
                 EXPECT_EQ(std::ssize(contents), kBytes);
                 for (const std::byte byte : contents)
                   if (byte != static_cast<std::byte>(i)) return ADD_FAILURE() << "another block", void();
               })
        .has_value();
  }
};

TEST(HostBlocks, WhatIsWrittenIsReadWithinTheBudget) {
  Host host(4 * kBytes + kBytes / 2);
  EXPECT_EQ(host.blocks->most(), 4u);
  EXPECT_EQ(host.allocated, static_cast<std::size_t>(4 * kBytes)) << "at once, and no more than that";
  EXPECT_FALSE(host.get(0));
  for (int i = 0; i < 100; ++i) {
    host.put(i);
    host.put(i);
    EXPECT_TRUE(host.get(i));
    EXPECT_LE(host.blocks->count(), 4);
  }
  EXPECT_EQ(host.blocks->evicted(), 96);
  EXPECT_EQ(host.allocated, static_cast<std::size_t>(4 * kBytes));
}

TEST(HostBlocks, TheLeastRecentlyUsedMakeRoom) {
  Host host(4 * kBytes);
  for (int i = 0; i < 4; ++i) host.put(i);
  host.blocks->touch(std::vector{key(0), key(1)});
  host.put(4);
  host.put(5);
  EXPECT_FALSE(host.get(2) || host.get(3));
  host.put(6);
  EXPECT_TRUE(host.get(0)) << "of blocks last used at the same time, the end of the prefix is evicted first";
  EXPECT_FALSE(host.get(1));
  EXPECT_EQ(host.blocks->take_removed(), (std::vector{key(2), key(3), key(1)}));
  EXPECT_TRUE(host.blocks->take_removed().empty());
}

TEST(HostBlocks, UnderArcWhatTwoPromptsHadStays) {
  for (const EvictionPolicy policy : {EvictionPolicy::lru, EvictionPolicy::arc}) {
    Host host(10 * kBytes, policy);
    for (int prompt = 0; prompt < 3; ++prompt) {
      host.put(1);
      host.blocks->touch(std::vector{key(1)});
    }
    for (int i = 100; i < 200; ++i) {
      host.put(i);
      host.blocks->touch(std::vector{key(i)});
    }
    EXPECT_EQ(host.get(1), policy == EvictionPolicy::arc);
    EXPECT_EQ(host.blocks->count(), 10);
  }
}

TEST(HostBlocks, WhatIsRemovedMakesRoom) {
  Host host(2 * kBytes);
  host.put(1);
  host.put(2);
  host.blocks->remove(std::vector{key(1), key(7)});
  EXPECT_FALSE(host.blocks->contains(key(1)));
  host.put(3);
  EXPECT_TRUE(host.get(2) && host.get(3));
  EXPECT_EQ(host.blocks->evicted(), 0);
  host.blocks->forget_all();
  EXPECT_EQ(host.blocks->count(), 0);
  host.put(4);
  EXPECT_TRUE(host.get(4));
}

TEST(HostBlocks, ABlockThatIsEvictedWhileItIsReadStaysWhatItIs) {
  Host host(2 * kBytes);
  host.put(1);
  host.put(2);
  EXPECT_TRUE(host.blocks->read(key(1), [&](std::span<const std::byte> contents) {
    for (int i = 10; i < 20; ++i) host.put(i);
    EXPECT_FALSE(host.blocks->contains(key(1)));
    EXPECT_TRUE(std::ranges::all_of(contents, [](std::byte byte) { return byte == std::byte{1}; }));
    EXPECT_EQ(host.blocks->count(), 1) << "one place is still read";
  }));
  host.put(30);
  host.put(31);
  EXPECT_TRUE(host.get(30) && host.get(31)) << "the place is free again";
}

TEST(HostBlocks, WhereAllIsBeingReadAWriterWaits) {
  Host host(kBytes);
  host.put(1);
  std::thread writer;
  EXPECT_TRUE(host.blocks->read(key(1), [&](std::span<const std::byte> contents) {
    writer = std::thread([&] { host.put(2); });
    while (host.blocks->contains(key(1))) std::this_thread::yield();
    EXPECT_TRUE(std::ranges::all_of(contents, [](std::byte byte) { return byte == std::byte{1}; }));
  }));
  writer.join();
  EXPECT_TRUE(host.get(2));
}

TEST(HostBlocks, WhereAllIsBeingWrittenAWriterWaitsForTheFirst) {
  Host host(kBytes);
  std::promise<void> begun, go_on;
  std::thread one([&] {
    EXPECT_TRUE(host.blocks->write(key(1), [&](std::span<std::byte> contents) {
      begun.set_value();
      go_on.get_future().wait();
      std::ranges::fill(contents, std::byte{1});
    }));
  });
  begun.get_future().wait();
  std::future<void> other = std::async(std::launch::async, [&] { host.put(2); });
  EXPECT_EQ(other.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  go_on.set_value();
  one.join();
  EXPECT_EQ(other.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  host.blocks->forget_all();  // so that a writer that waits for a free slot can continue
  other.wait();
  EXPECT_EQ(host.blocks->evicted(), 1);
}

TEST(HostBlocks, WhoReadsABlockThatIsEvictedSeesItOrNone) {
  Host host(4 * kBytes);
  std::atomic<int> last = 0, seen = 0;
  std::atomic<bool> done = false;
  const auto read = [&] {
    for (int turn = 0; !done; ++turn) seen += host.get(last - turn % 5);
  };
  std::thread one(read), other(read);
  while (last < 5000 || seen < 1000) {
    host.put(last);
    ++last;
  }
  done = true;
  one.join();
  other.join();
  EXPECT_LE(host.blocks->count(), 4) << "places that are read count for two";
}

TEST(HostBlocks, SizesThatCannotBeAreErrorsWithTheFigures) {
  const auto message = [](std::int64_t bytes, std::uint64_t machine) {
    const auto opened = HostBlocks::open(kBytes, bytes, EvictionPolicy::lru, machine, allocate_host);
    return opened ? "" : opened.error().message;
  };
  EXPECT_THAT(message(kBytes - 1, 0), testing::AllOf(HasSubstr("4999 bytes"), HasSubstr("has 5000 bytes")));
  EXPECT_THAT(message(50'001, 50'000), testing::AllOf(HasSubstr("50001 bytes"), HasSubstr("50000")));
  EXPECT_EQ(message(50'000, 50'000), "");
  EXPECT_EQ(HostBlocks::open(kBytes, kBytes, EvictionPolicy::lru, 0,
                             [](std::size_t) { return failure(ErrorCode::resource_exhausted, "no memory"); })
                .error()
                .message,
            "no memory");
}

}  // namespace
}  // namespace octavo
