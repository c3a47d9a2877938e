// The CPU backend's stream: operators run at once, on the engine's thread pool, in one instruction set.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
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
  const IsaKernels& kernels() const { return *kernels_; }

  // At least `bytes` of working memory, aligned to 64 bytes, for thread `rank` of the pool until its next
  // call. Grows to the largest that was asked for and stays, so that a warm operator allocates nothing.
  std::byte* scratch(int rank, std::size_t bytes) {
    Scratch& s = scratch_[static_cast<std::size_t>(rank)];
    if (s.bytes < bytes) {
      s.memory.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      s.bytes = bytes;
    }
    return s.memory.get();
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
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  struct Scratch {
    std::unique_ptr<std::byte, Free> memory;
    std::size_t bytes = 0;
  };

  ThreadPool pool_;
  const IsaKernels* kernels_;
  std::vector<Scratch> scratch_;  // one for each thread
  Buffer shared_;
};

// Operators of this backend are only ever called with its own stream.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline ThreadPool& pool_of(Stream& stream) { return cpu_stream(stream).pool(); }

}  // namespace octavo::cpu
