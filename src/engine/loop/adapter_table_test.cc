// Tests loading, waiting and eviction of adapters, on a device that only counts matrices.
#include "engine/loop/adapter_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace octavo {
namespace {

class NotingSlots final : public AdapterSlots {
 public:
  // An adapter has ten matrices, so it is copied in two parts.
  Result<AdapterFile> read_adapter(const std::string& path) const override {
    if (path == "broken") return failure(ErrorCode::corrupt, "broken");
    return AdapterFile{.changes = std::vector<AdapterFile::Change>(10), .digest = {path.size(), 0}};
  }
  Result<> put_adapter(int slot, std::span<const AdapterFile::Change> changes) override {
    matrices[slot] += static_cast<int>(changes.size());
    return {};
  }
  void drop_adapter(int slot) override { matrices.erase(slot); }

  std::map<int, int> matrices;
};

class AdapterTableTest : public testing::Test {
 protected:
  // Waits until `folders` more folders have been read and no copy is in progress.
  void settle(int folders) {
    wanted_ += folders;
    for (int i = 0; i < 60'000 && read_ < wanted_; ++i) {
      advance();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(read_, wanted_);
    for (int i = 0; i < 50; ++i) advance();
  }
  void advance() {
    table_.advance([&](int slot) { return used_.contains(slot); });
  }
  void load(const std::string& name, const std::string& path = "folder") {
    table_.load({name, path}, [this, name](const Result<>& done) {
      results_[name] = done ? "ready" : done.error().message;
    });
  }
  // Returns the slot of the adapter, -1 while it is loading, or -2 after an error.
  int slot(const std::string& name) {
    const auto use = table_.use(name);
    return !use ? -2 : *use ? (*use)->slot : -1;
  }

  NotingSlots slots_;
  std::set<int> used_;
  std::map<std::string, std::string> results_;
  std::atomic<int> read_ = 0;
  int wanted_ = 0;
  AdapterTable table_{&slots_, 2, [this] { ++read_; }};
};

TEST_F(AdapterTableTest, AllMatricesAreThereBeforeItIsReady) {
  load("a");
  EXPECT_EQ(slot("a"), -1);
  settle(1);
  EXPECT_EQ(results_["a"], "ready");
  EXPECT_EQ(slots_.matrices[slot("a")], 10);
}

TEST_F(AdapterTableTest, TheOneUsedLongestAgoLeaves) {
  load("a");
  load("b");
  settle(2);
  const int slot_of_b = slot("b");
  EXPECT_GE(slot("a"), 0);
  load("c");
  settle(1);
  EXPECT_EQ(slot("c"), slot_of_b);
  EXPECT_EQ(slot("b"), -1) << "is read again";
  settle(1);
  EXPECT_GE(slot("b"), 0);
  EXPECT_EQ(slot("a"), -1);
}

TEST_F(AdapterTableTest, WhatIsUsedStays) {
  load("a");
  load("b");
  settle(2);
  used_ = {slot("a"), slot("b")};
  load("c");
  settle(1);
  EXPECT_EQ(slot("c"), -1);
  EXPECT_FALSE(results_.contains("c"));
  used_.erase(slot("a"));
  settle(0);
  EXPECT_EQ(results_["c"], "ready");
  EXPECT_GE(slot("b"), 0);
}

TEST_F(AdapterTableTest, AReplacedOneStaysAsLongAsItIsUsed) {
  load("a");
  settle(1);
  const int old = slot("a");
  used_ = {old};
  load("a", "another folder");
  settle(1);
  EXPECT_NE(slot("a"), old);
  EXPECT_EQ((*table_.use("a"))->digest.low, std::string("another folder").size());
  EXPECT_EQ(slots_.matrices.size(), 2u);
  used_.clear();
  settle(0);
  EXPECT_EQ(slots_.matrices.size(), 1u);
}

TEST_F(AdapterTableTest, ErrorsReachWhoAsked) {
  load("bad", "broken");
  settle(1);
  EXPECT_EQ(results_["bad"], "broken");
  EXPECT_EQ(slot("bad"), -2);
  load("bad");
  settle(1);
  EXPECT_GE(slot("bad"), 0);
  std::string answer;
  const auto done = [&](const Result<>& result) { answer = result ? "done" : result.error().message; };
  table_.unload("bad", done);
  EXPECT_EQ(answer, "done");
  EXPECT_EQ(slot("bad"), -2);
  table_.unload("bad", done);
  EXPECT_EQ(answer, "no adapter has this name");
  settle(0);
  EXPECT_TRUE(slots_.matrices.empty());
}

TEST_F(AdapterTableTest, WhoWaitsForOneThatFailsHearsWhy) {
  load("bad", "broken");
  EXPECT_EQ(slot("bad"), -1);
  while (!table_.advance([](int) { return false; }))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto use = table_.use("bad");
  ASSERT_FALSE(use);
  EXPECT_EQ(use.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(use.error().message, "cannot load the adapter: broken");
  advance();
  EXPECT_EQ(table_.use("bad").error().code, ErrorCode::not_found);
}

TEST(AdapterTableEnd, TellsWhoWaits) {
  NotingSlots slots;
  std::string result;
  {
    AdapterTable table(&slots, 1, [] {});
    table.load({"a", "folder"},
               [&](const Result<>& done) { result = done ? "ready" : done.error().message; });
  }
  EXPECT_EQ(result, "the engine was stopped");
}

}  // namespace
}  // namespace octavo
