#include "record/recording_engine.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

// Keeps the submitted requests. The test delivers the outputs.
class ManualEngine final : public EngineClient {
 public:
  struct Submitted {
    Request request;
    std::shared_ptr<OutputSink> sink;
  };

  explicit ManualEngine(std::vector<Submitted>& submitted) : submitted_(submitted) {}
  EngineInfo info() const override { return {}; }
  Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) override {
    if (request.prompt.empty()) return invalid("prompt", "is empty");
    submitted_.push_back({std::move(request), std::move(sink)});
    return submitted_.size();
  }
  void abort(RequestId) override {}
  void reset_prefix_cache() override {}
  void load_adapter(AdapterSource, AdapterDone done) override { done({}); }
  void reload_weights(std::string, Done done) override { done({}); }
  std::vector<EngineStats> stats() const override { return {}; }
  void drain() override {}

 private:
  std::vector<Submitted>& submitted_;
};

class CountingSink final : public OutputSink {
 public:
  void deliver(Output&& output) noexcept override { tokens += std::ssize(output.token_ids); }
  std::int64_t tokens = 0;
};

class RecordingEngineTest : public testing::Test {
 protected:
  RecordingEngineTest()
      : engine_(std::make_unique<RecordingEngine>(
            std::make_unique<ManualEngine>(submitted_), RecordLog::open({.dir = folder_.path()}).value(),
            RecordedEngine{.identity = {.weights = "w"},
                           .seed = 1,
                           .adapter_of = [](const std::string& path) { return "hash of " + path; }})) {}

  Request request() const {
    Request request;
    request.name = "r\xff";
    request.prompt = {1, 2};
    return request;
  }
  void submit(Request request) { ASSERT_TRUE(engine_->submit(std::move(request), sink_)); }
  void deliver(int index, std::vector<TokenId> tokens, std::optional<FinishReason> finished) {
    Output output;
    output.index = index;
    output.token_ids = std::move(tokens);
    output.finished = finished;
    submitted_.back().sink->deliver(std::move(output));
  }
  // Destroys the engine and its log, then reads the records.
  std::vector<Record> records() {
    engine_.reset();
    std::vector<Record> records;
    const auto files = record_files(folder_.path().string()).value();
    for (const auto& path : files) {
      std::ifstream file(path);
      for (std::string line; std::getline(file, line);) records.push_back(parse_record(line).value());
    }
    return records;
  }

  const ScratchDirectory folder_;
  std::vector<ManualEngine::Submitted> submitted_;
  const std::shared_ptr<CountingSink> sink_ = std::make_shared<CountingSink>();
  std::unique_ptr<RecordingEngine> engine_;
};

TEST_F(RecordingEngineTest, ARecordHasAllAnswersAndTheSeedThatTheyUse) {
  Request two = request();
  two.sampling.n = 2;
  submit(std::move(two));
  deliver(1, {5}, std::nullopt);
  deliver(0, {3, 4}, FinishReason::stop);
  deliver(1, {6}, FinishReason::length);
  EXPECT_EQ(sink_->tokens, 4);
  const auto entropy = submitted_.back().request.entropy;
  ASSERT_TRUE(entropy);
  const std::vector<Record> all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].id, "r");
  EXPECT_EQ(all[0].request->entropy, entropy);
  EXPECT_GT(all[0].arrived_us, 1'600'000'000'000'000);
  ASSERT_EQ(all[0].answers.size(), 2U);
  EXPECT_EQ(all[0].answers[0].tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(all[0].answers[0].finish, "length");
  EXPECT_EQ(all[0].answers[1].finish, "stop");
}

TEST_F(RecordingEngineTest, RequestsWithoutASeedGetDifferentOnes) {
  submit(request());
  submit(request());
  EXPECT_NE(submitted_[0].request.entropy, submitted_[1].request.entropy);
}

TEST_F(RecordingEngineTest, ARefusedRequestIsNotRecorded) {
  EXPECT_FALSE(engine_->submit({}, sink_));
  EXPECT_TRUE(records().empty());
}

TEST_F(RecordingEngineTest, AdapterAndNewWeightsAreNamed) {
  engine_->load_adapter({"poet", "folder"}, [](const Result<>&) {});
  Request poem = request();
  poem.identity.adapter = "poet";
  submit(std::move(poem));
  engine_->reload_weights("other", [](const Result<>&) {});
  deliver(0, {1}, FinishReason::stop);
  submit(request());
  deliver(0, {1}, FinishReason::stop);
  const std::vector<Record> all = records();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].adapter, "hash of folder");
  EXPECT_EQ(all[0].engine.weights, "changed during the request");
  EXPECT_EQ(all[1].engine.weights, "reloaded other");
}

}  // namespace
}  // namespace octavo
