// Tests that the emulator detects reads of unwritten shared memory, and races between barriers.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/runtime.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = 64;

// A kernel in which each thread block reads the static variable before writing it.
__global__ void look(float* out) {
  wait_for_kernels();
  OCTAVO_SHARED(float, numbers, [kThreads]);
  out[block_x() * kThreads + thread()] = numbers[thread()];
  numbers[thread()] = 1;
}

// A kernel in which each thread reads its neighbour's number, with or without a barrier before the read.
__global__ void pass(float* out, bool barrier) {
  wait_for_kernels();
  OCTAVO_SHARED(float, numbers, [kThreads]);
  numbers[thread()] = static_cast<float>(thread());
  if (barrier) __syncthreads();
  out[thread()] = numbers[(thread() + 1) % kThreads];
}

__global__ void overwrite(float* out) {
  wait_for_kernels();
  *out = static_cast<float>(block_x());
}

__global__ void fill(float* out) {
  wait_for_kernels();
  out[thread()] = 7;
}

// A kernel in which half of the threads do not call wait_for_kernels().
__global__ void hurry(float* out) {
  if (thread() % 2 == 0) wait_for_kernels();
  out[thread()] = 0;
}

class CudaEmulator : public testing::Test {
 protected:
  void SetUp() override {
    stream_ = runtime::make_stream();
    memory_ = static_cast<float*>(runtime::allocate(4 * kThreads * sizeof(float)).value());
  }
  void TearDown() override {
    runtime::release(memory_);
    runtime::destroy_stream(stream_);
  }
  std::vector<float> numbers() {
    std::vector<float> list(4 * kThreads);
    runtime::copy_to_host(stream_, list.data(), memory_, list.size() * sizeof(float));
    runtime::synchronize(stream_);
    return list;
  }
  // Launches often enough that the emulator runs some launches twice.
  template <class... Args>
  void run(unsigned blocks, void (*kernel)(float*, Args...), Args... args) {
    for (int i = 0; i < 10; ++i) launch(stream_, {blocks}, kThreads, 0, kernel, memory_, args...);
    runtime::synchronize(stream_);
  }

  StreamHandle stream_ = nullptr;
  float* memory_ = nullptr;
};

TEST_F(CudaEmulator, StaticSharedMemoryBeginsAsNanInEveryBlock) {
  run(4, look);
  for (const float x : numbers()) ASSERT_TRUE(std::isnan(x));
}

TEST_F(CudaEmulator, ABarrierPassesNumbersOn) {
  run(1, pass, true);
  const std::vector<float> list = numbers();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(list[static_cast<std::size_t>(i)], (i + 1) % kThreads);
}

TEST_F(CudaEmulator, AKernelThatDoesNotWaitIsFound) {
  EXPECT_DEATH(run(1, hurry), "a thread that has not waited for the kernels before its own");
}

TEST_F(CudaEmulator, ARaceBetweenThreadsIsFound) {
  EXPECT_DEATH(run(1, pass, false), "a race: the result depends on the order of threads or blocks");
}

TEST_F(CudaEmulator, ARaceBetweenBlocksIsFound) { EXPECT_DEATH(run(2, overwrite), "a race"); }

// Functions of the host run in the order of the stream, without access to device memory.
TEST_F(CudaEmulator, AFunctionOfTheHostRunsBetweenCopies) {
  float number = 0;
  run(1, fill);
  runtime::copy_to_host(stream_, &number, memory_, sizeof number);
  runtime::call_host(stream_, [](void* data) { *static_cast<float*>(data) += 1; }, &number);
  runtime::copy_to_device(stream_, memory_ + 1, &number, sizeof number);
  EXPECT_EQ(number, 0);
  EXPECT_EQ(numbers()[1], 8);
  EXPECT_DEATH(
      {
        runtime::call_host(stream_, [](void* data) { *static_cast<float*>(data) += 1; }, memory_);
        runtime::synchronize(stream_);
      },
      "");
}

}  // namespace
}  // namespace octavo::cuda
