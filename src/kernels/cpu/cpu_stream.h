// The CPU backend's stream: operators run at once, on the engine's thread pool.
#pragma once

#include "base/thread_pool.h"
#include "kernels/device.h"

namespace octavo::cpu {

class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads) : pool_(threads) {}
  void synchronize() override {}
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
};

// Operators of this backend are only ever called with its own stream.
inline ThreadPool& pool_of(Stream& stream) { return static_cast<CpuStream&>(stream).pool(); }

}  // namespace octavo::cpu
