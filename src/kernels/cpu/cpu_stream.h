// The CPU backend's stream: operators run at once, on the engine's thread pool, in one instruction set.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/device.h"

namespace octavo::cpu {

class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads, const IsaKernels* kernels = nullptr)
      : pool_(threads), kernels_(kernels), scratch_(static_cast<std::size_t>(threads)) {}
  void synchronize() override {}
  ThreadPool& pool() { return pool_; }
  // Of the calling thread alone: for the parts of a unit of the pool's.
  ThreadPool& own_thread() { return own_thread_; }
  const IsaKernels& kernels() const { return *kernels_; }

  // Working memory of one operator for each thread of the pool, aligned to a page. Is reserved before the
  // first step, for the largest operator.
  Result<> reserve_scratch(std::size_t bytes) {
    for (Buffer& scratch : scratch_) {
      if (bytes <= scratch.bytes()) continue;
      TRY(scratch, allocate_host(bytes));
    }
    return {};
  }
  std::byte* scratch(int rank, std::size_t bytes) {
    Buffer& scratch = scratch_[static_cast<std::size_t>(rank)];
    CHECK(bytes <= scratch.bytes(), "{} bytes of scratch memory, {} reserved", bytes, scratch.bytes());
    return static_cast<std::byte*>(scratch.data());
  }

  // Working memory of one operator, seen by all threads. Reserved when weights are prepared.
  Result<> reserve_shared(std::size_t bytes) {
    if (bytes <= shared_.bytes()) return {};
    TRY(shared_, allocate_host(bytes));
    return {};
  }
  std::byte* shared(std::size_t bytes) {
    CHECK(bytes <= shared_.bytes(), "{} bytes of {}", bytes, shared_.bytes());
    return static_cast<std::byte*>(shared_.data());
  }

 private:
  ThreadPool pool_;
  ThreadPool own_thread_{1};  // has no state that a job changes
  const IsaKernels* kernels_;
  std::vector<Buffer> scratch_;  // one for each thread
  Buffer shared_;
};

// Operators of this backend are only ever called with its own stream.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline ThreadPool& pool_of(Stream& stream) { return cpu_stream(stream).pool(); }

}  // namespace octavo::cpu
