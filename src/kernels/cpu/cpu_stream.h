// The CPU backend's stream: operators run at once, on the engine's thread pool.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/device.h"

namespace octavo::cpu {

class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads) : pool_(threads), scratch_(static_cast<std::size_t>(threads)) {}
  void synchronize() override {}
  ThreadPool& pool() { return pool_; }

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
  std::vector<Scratch> scratch_;  // one for each thread
};

// Operators of this backend are only ever called with its own stream.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline ThreadPool& pool_of(Stream& stream) { return cpu_stream(stream).pool(); }

}  // namespace octavo::cpu
