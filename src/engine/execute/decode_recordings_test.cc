#include "engine/execute/decode_recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

class FakeStream final : public Stream {
 public:
  void synchronize() override {}
  bool asynchronous() const override { return true; }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    recording_ = true;
    work();
    recording_ = false;
    ++recorded;
    return std::make_unique<Recording>();
  }
  void replay(const Recording&) override { ++replayed; }

  void launch() { recording_ ? ++launched_in_recording : ++launched; }
  int launched = 0, launched_in_recording = 0, recorded = 0, replayed = 0;

 private:
  bool recording_ = false;
};

Batch batch_of(const std::vector<int>& counts) {
  Batch batch;
  batch.query_starts = {0};
  for (const int count : counts) {
    batch.ids.resize(batch.ids.size() + static_cast<std::size_t>(count));
    batch.query_starts.push_back(batch.tokens());
    batch.lengths.push_back(100);
  }
  return batch;
}

TEST(DecodeRecordings, SizesReachTheMostSequencesAndNoFurther) {
  EXPECT_THAT(DecodeRecordings(1).sizes(), testing::ElementsAre(1));
  EXPECT_THAT(DecodeRecordings(20).sizes(), testing::ElementsAre(1, 2, 4, 8, 16, 20));
  EXPECT_THAT(DecodeRecordings(128).sizes(), testing::ElementsAre(1, 2, 4, 8, 16, 32, 48, 64, 96, 128));
  EXPECT_TRUE(DecodeRecordings(0).sizes().empty());
  for (const int most : {1, 3, 17, 100, 512, 5000}) {
    const DecodeRecordings recordings(most);
    EXPECT_EQ(recordings.sizes().back(), std::min(most, 512));
    EXPECT_TRUE(std::ranges::is_sorted(recordings.sizes(), std::less_equal<>()));
  }
}

TEST(DecodeRecordings, AStepIsPaddedToTheNextSize) {
  const DecodeRecordings recordings(100);
  for (int sequences = 1; sequences <= 100; ++sequences) {
    const int size = recordings.size_of(batch_of(std::vector<int>(static_cast<std::size_t>(sequences), 1)));
    EXPECT_GE(size, sequences);
    EXPECT_EQ(size, *std::ranges::lower_bound(recordings.sizes(), sequences));
  }
  EXPECT_EQ(recordings.size_of(batch_of(std::vector<int>(101, 1))), 0) << "more than there is room for";
}

TEST(DecodeRecordings, StepsThatDoMoreThanDecodeAreRunAsTheyAre) {
  const DecodeRecordings recordings(8);
  EXPECT_EQ(recordings.size_of(batch_of({1, 1})), 2);
  EXPECT_EQ(recordings.size_of(batch_of({1, 5})), 0);
  EXPECT_EQ(recordings.size_of(batch_of({0, 2})), 0)
      << "the number of tokens is that of the sequences, but not one of each";
  EXPECT_EQ(DecodeRecordings(0).size_of(batch_of({1})), 0);
}

TEST(DecodeRecordings, ASizeRunsOnceIsRecordedOnceAndReplayedFromThenOn) {
  DecodeRecordings recordings(4);
  FakeStream stream;
  const auto work = [&] { stream.launch(); };
  for (int i = 0; i < 5; ++i) recordings.run(stream, 2, work);
  EXPECT_EQ(stream.launched, 1);
  EXPECT_EQ(stream.launched_in_recording, 1);
  EXPECT_EQ(stream.recorded, 1);
  EXPECT_EQ(stream.replayed, 4);
  recordings.run(stream, 4, work);
  EXPECT_EQ(stream.launched, 2);
  EXPECT_EQ(stream.replayed, 4);
}

}  // namespace
}  // namespace octavo
