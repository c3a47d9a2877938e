#include "engine/media/media_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/clock.h"

namespace octavo {
namespace {

using testing::ElementsAre;

class FakeEncoder final : public MediaEncoder {
 public:
  Result<> begin_media(int slot, const MediaPart& part) override {
    if (part.bytes == "broken") return failure(ErrorCode::resource_exhausted, "no memory");
    EXPECT_FALSE(begun_parts.contains(slot));
    begun = {slot, part.bytes};
    slices_done = 0;
    return {};
  }
  bool advance_media(int) override {
    if (++slices_done < slices) return false;
    begun_parts.insert(begun);
    ++encoded;
    return true;
  }
  void drop_media(int slot) override { EXPECT_EQ(begun_parts.erase(slot), 1u); }

  std::map<int, std::string> begun_parts;
  std::pair<int, std::string> begun;
  int slices = 1, slices_done = 0;
  int encoded = 0;
};

class MediaTableTest : public testing::Test {
 protected:
  static constexpr int kTokens = 10;

  std::shared_ptr<Accepted> request(RequestId id, const std::vector<std::string>& images) {
    auto accepted = std::make_shared<Accepted>();
    accepted->id = id;
    for (const std::string& pixels : images)
      accepted->request.media.push_back(
          {hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(pixels)), 0), 0, kTokens, pixels});
    table_.add(accepted);
    return accepted;
  }

  std::vector<RequestId> advance() {
    std::vector<RequestId> ready;
    do {
      if (const auto one = table_.advance({})) ready.push_back(one->id);
    } while (table_.encoding());
    return ready;
  }
  std::vector<std::string> seen(const Accepted& accepted) {
    std::vector<std::string> pixels;
    for (const auto& image : accepted.encoded) pixels.push_back(encoder_.begun_parts.at(image->slot));
    return pixels;
  }

  FakeEncoder encoder_;
  MediaTable table_{&encoder_, 3 * kTokens};
};

TEST_F(MediaTableTest, EncodesOneImageAtATime) {
  const auto first = request(1, {"a", "b"});
  EXPECT_FALSE(table_.advance({}).has_value());
  EXPECT_EQ(encoder_.encoded, 1);
  EXPECT_TRUE(table_.encoding());
  const auto ready = table_.advance({});
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->id, 1u);
  EXPECT_THAT(seen(*first), ElementsAre("a", "b"));
  EXPECT_TRUE(first->request.media[0].bytes.empty());
  EXPECT_FALSE(table_.encoding());
}

TEST_F(MediaTableTest, RunsOneSliceAtATime) {
  encoder_.slices = 3;
  const auto first = request(1, {"a"});
  for (int slice = 0; slice < 2; ++slice) {
    EXPECT_FALSE(table_.advance({}).has_value());
    EXPECT_TRUE(table_.encoding());
    EXPECT_EQ(encoder_.encoded, 0);
  }
  EXPECT_EQ(table_.advance({})->id, 1u);
  EXPECT_THAT(seen(*first), ElementsAre("a"));
}

TEST_F(MediaTableTest, RunsAsManySlicesAsThereIsTimeFor) {
  encoder_.slices = 3;
  const auto first = request(1, {"a"});
  EXPECT_EQ(table_.advance({.until_us = now_us() + 1'000'000'000'000})->id, 1u);
}

TEST_F(MediaTableTest, WhatNobodyWaitsForIsGivenUp) {
  encoder_.slices = 2;
  auto first = request(1, {"a"});
  EXPECT_FALSE(table_.advance({}).has_value());
  first.reset();
  const auto second = request(2, {"b", "c", "d"});
  EXPECT_THAT(advance(), ElementsAre(2));
  EXPECT_THAT(seen(*second), ElementsAre("b", "c", "d"));
  EXPECT_EQ(encoder_.encoded, 3);
}

// An unfinished part continues if any request waits for it.
TEST_F(MediaTableTest, WhatSomebodyElseWaitsForGoesOn) {
  encoder_.slices = 2;
  auto first = request(1, {"a"});
  const auto second = request(2, {"a"});
  EXPECT_FALSE(table_.advance({}).has_value());
  first.reset();
  EXPECT_EQ(table_.advance({})->id, 2u);
}

TEST_F(MediaTableTest, EqualImagesAreEncodedOnce) {
  auto first = request(1, {"a", "a"});
  const auto second = request(2, {"b", "a"});
  EXPECT_THAT(advance(), ElementsAre(1, 2));
  EXPECT_EQ(encoder_.encoded, 2);
  first.reset();
  const auto third = request(3, {"a"});
  EXPECT_THAT(advance(), ElementsAre(3));
  EXPECT_EQ(encoder_.encoded, 2);
}

TEST_F(MediaTableTest, TheOneUsedLongestAgoLeaves) {
  auto first = request(1, {"a", "b", "c"});
  advance();
  first.reset();
  advance();
  request(2, {"a"});  // aborted immediately
  auto third = request(3, {"a"});
  advance();
  auto fourth = request(4, {"d"});
  EXPECT_THAT(advance(), ElementsAre(4));
  EXPECT_THAT(seen(*third), ElementsAre("a"));
  third.reset();
  fourth.reset();
  const auto fifth = request(5, {"b"});
  advance();
  EXPECT_EQ(encoder_.encoded, 5);  // b was evicted
}

TEST_F(MediaTableTest, WaitsForMemoryOfOthersAndAbortedOnesAreForgotten) {
  auto first = request(1, {"a", "b"});
  EXPECT_THAT(advance(), ElementsAre(1));
  const auto second = request(2, {"c", "d"});
  auto third = request(3, {"a"});
  EXPECT_THAT(advance(), ElementsAre());  // the third request waits for the second one
  EXPECT_FALSE(table_.encoding());
  third.reset();
  EXPECT_THAT(advance(), ElementsAre());
  first.reset();
  EXPECT_THAT(advance(), ElementsAre(2));
  EXPECT_THAT(seen(*second), ElementsAre("c", "d"));
}

TEST_F(MediaTableTest, AnErrorEndsItsRequestAlone) {
  const auto first = request(1, {"broken"});
  const auto second = request(2, {"a"});
  const auto failed = table_.advance({});
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->id, 1u);
  EXPECT_FALSE(failed->result.has_value());
  const auto ready = table_.advance({});
  ASSERT_TRUE(ready.has_value());
  EXPECT_TRUE(ready->result.has_value());
  EXPECT_EQ(ready->id, 2u);
}

}  // namespace
}  // namespace octavo
