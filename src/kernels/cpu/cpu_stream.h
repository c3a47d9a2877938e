// The CPU backend's stream: operators run at once, on the engine's thread pool, in one instruction set.
#pragma once

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/device.h"

namespace octavo::cpu {

class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads, const IsaKernels* kernels = nullptr) : pool_(threads), kernels_(kernels) {}
  void synchronize() override {}
  ThreadPool& pool() { return pool_; }
  const IsaKernels& kernels() const { return *kernels_; }

  // Working memory of the operators. Grows when weights are prepared, so that no step allocates.
  Result<> reserve(std::size_t bytes) {
    if (bytes <= scratch_.bytes()) return {};
    TRY(scratch_, allocate_host(bytes));
    return {};
  }
  std::byte* scratch(std::size_t bytes) {
    CHECK(bytes <= scratch_.bytes(), "{} bytes of {}", bytes, scratch_.bytes());
    return static_cast<std::byte*>(scratch_.data());
  }

 private:
  ThreadPool pool_;
  const IsaKernels* kernels_;
  Buffer scratch_;
};

// Operators of this backend are only ever called with its own stream.
inline CpuStream& cpu_stream(Stream& stream) { return static_cast<CpuStream&>(stream); }
inline ThreadPool& pool_of(Stream& stream) { return cpu_stream(stream).pool(); }

}  // namespace octavo::cpu
