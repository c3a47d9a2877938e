// Tests streams, marks, CUDA graphs and staging of the CUDA backend, on a GPU or on the emulator. The
// emulator runs work only when a thread waits.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/backends.h"
#include "kernels/staging.h"

namespace octavo {
namespace {

class CudaStreams : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_cuda_backend();
    if (!made) GTEST_SKIP() << made.error().message;
    backend_.emplace(*std::move(made));
    memory_ = backend_->device->allocate(kCount * sizeof(float)).value();
  }
  Stream& stream() { return *backend_->stream; }
  Device& device() { return *backend_->device; }
  View all() const { return memory_.view(DType::f32, {1, kCount}); }
  void scale(float factor) { backend_->ops.scale_logits(stream(), {.logits = all(), .scale = factor}); }
  void read(Buffer& to) { device().download(stream(), to.data(), all()); }
  static float value(const Buffer& numbers) {
    const auto* first = static_cast<const float*>(numbers.data());
    for (std::int64_t i = 1; i < kCount; ++i) EXPECT_EQ(first[i], first[0]);
    return first[0];
  }
  Buffer staging() { return device().allocate_staging(kCount * sizeof(float)).value(); }
  void write(float number, Staging& staging) {
    staging.swap(stream());
    std::fill_n(reinterpret_cast<float*>(staging.data()), kCount, number);
    staging.send(device(), stream(), all());
  }

  static constexpr std::int64_t kCount = 1000;
  std::optional<Backend> backend_;
  Buffer memory_;
};

TEST_F(CudaStreams, AMarkStandsForWhatCameBeforeIt) {
  Staging numbers;
  ASSERT_TRUE(numbers.reserve(device(), stream(), kCount * sizeof(float)));
  std::vector<Buffer> results;
  std::vector<Stream::Mark> marks;
  for (int i = 0; i < 600; ++i) {  // more marks than events in the ring
    write(static_cast<float>(i), numbers);
    scale(2);
    read(results.emplace_back(staging()));
    marks.push_back(stream().mark());
  }
  for (std::size_t i = 0; i < marks.size(); i += 7) {
    stream().wait(marks[i]);
    EXPECT_EQ(value(results[i]), static_cast<float>(2 * i));
  }
}

TEST_F(CudaStreams, MemoryIsClearedInOrder) {
  Staging numbers;
  ASSERT_TRUE(numbers.reserve(device(), stream(), kCount * sizeof(float)));
  write(3, numbers);
  Buffer before = staging(), after = staging();
  read(before);
  device().clear(stream(), all());
  read(after);
  stream().synchronize();
  EXPECT_EQ(value(before), 3);
  EXPECT_EQ(value(after), 0);
}

// wait() must wait only for its mark. Otherwise, a host that waits for the previous step would also wait for
// the running step.
TEST_F(CudaStreams, WhoWaitsForAMarkDoesNotWaitForWhatCameBehindIt) {
  if (device().name() != "emulated") GTEST_SKIP() << "a real device runs without calls of the host";
  Staging numbers;
  ASSERT_TRUE(numbers.reserve(device(), stream(), kCount * sizeof(float)));
  write(1, numbers);
  Buffer before = staging(), behind = staging();
  read(before);
  const Stream::Mark mark = stream().mark();
  for (int i = 0; i < 100; ++i) {
    scale(1);
    stream().mark();
  }
  read(behind);
  stream().wait(mark);
  EXPECT_EQ(value(before), 1);
  EXPECT_EQ(value(behind), 0) << "not read yet";
  stream().synchronize();
  EXPECT_EQ(value(behind), 1);
}

TEST_F(CudaStreams, ARecordingWorksOnWhatIsThereWhenItIsReplayed) {
  ASSERT_TRUE(stream().asynchronous());
  Staging numbers;
  ASSERT_TRUE(numbers.reserve(device(), stream(), kCount * sizeof(float)));
  scale(1);  // loads the kernel before the capture, because loading happens at the first run
  write(1, numbers);
  const auto recording = stream().record([&] {
    scale(3);
    scale(5);
  });
  Buffer before = staging(), once = staging(), again = staging();
  read(before);
  stream().replay(*recording);
  read(once);
  write(2, numbers);
  stream().replay(*recording);
  stream().replay(*recording);
  read(again);
  stream().synchronize();
  EXPECT_EQ(value(before), 1) << "recording runs nothing";
  EXPECT_EQ(value(once), 15);
  EXPECT_EQ(value(again), 450);
}

// Attention plans of one stream run one after the other, so they can share one buffer for states of pieces.
TEST_F(CudaStreams, AttentionPlansShareTheStatesOfPieces) {
  const AttentionLimits limits{.max_tokens = 4096,
                               .max_sequences = 8,
                               .max_length = 1 << 17,
                               .q_heads = 32,
                               .kv = {.kv_heads = 8, .head_dim = 128}};
  const std::size_t before = device().available_bytes();
  const auto first = backend_->ops.make_attention_plan(device(), limits);
  ASSERT_TRUE(first.has_value());
  const std::size_t with_one = device().available_bytes();
  const auto second = backend_->ops.make_attention_plan(device(), limits);
  ASSERT_TRUE(second.has_value());
  const std::size_t states = before - with_one, more = with_one - device().available_bytes();
  EXPECT_GT(states, std::size_t{100} << 20);
  EXPECT_LT(more, states / 8);
}

TEST_F(CudaStreams, AnAttentionPlanWithoutMemoryIsAnError) {
  const auto plan = backend_->ops.make_attention_plan(device(), {.max_tokens = 1 << 20,
                                                                 .max_sequences = 1 << 20,
                                                                 .max_length = 1 << 30,
                                                                 .q_heads = 32,
                                                                 .kv = {.kv_heads = 8, .head_dim = 128}});
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::resource_exhausted);
}

TEST_F(CudaStreams, CopiesOnTheDevice) {
  Staging numbers;
  ASSERT_TRUE(numbers.reserve(device(), stream(), kCount * sizeof(float)));
  const Buffer other = device().allocate(kCount * sizeof(float)).value();
  write(7, numbers);
  device().copy(stream(), other.view(DType::f32, {1, kCount}), all());
  scale(0);
  device().copy(stream(), all(), other.view(DType::f32, {1, kCount}));
  Buffer result = staging();
  read(result);
  stream().synchronize();
  EXPECT_EQ(value(result), 7);
}

}  // namespace
}  // namespace octavo
