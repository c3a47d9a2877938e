// The stream of the CPU backend. It runs operators immediately, on the engine's thread pool, with one
// instruction set.
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
  // Returns a pool that has only the calling thread, for operators inside a unit of work of the engine's
  // pool.
  ThreadPool& own_thread() { return own_thread_; }
  const IsaKernels& kernels() const { return *kernels_; }

  // Reserves page-aligned working memory for each thread of the pool. One operator at a time uses the
  // memory. Call it before the first step, with the size for the operator that needs most.
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

  // Reserves working memory that all threads share, for one operator at a time. Call it while weights are
  // prepared.
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
  ThreadPool own_thread_{1};
  const IsaKernels* kernels_;
  std::vector<Buffer> scratch_;
  Buffer shared_;
};

// `stream` must be a CpuStream, as in all operators of this backend.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline ThreadPool& pool_of(Stream& stream) { return cpu_stream(stream).pool(); }

}  // namespace octavo::cpu
