// What this machine can do at most: bytes read from memory and arithmetic, each by the simplest loop that
// does nothing else.
#pragma once

#include <atomic>
#include <functional>

#include "base/thread_pool.h"
#include "kernels/backends.h"
#include "tensor/buffer.h"

namespace octavo {

// The arithmetic that bounds an operator: fused multiply-adds of f32, dot products of pairs of bf16 or of
// quads of bytes. Where the instruction set lacks the latter two, they are done in f32.
enum class Arithmetic : std::uint8_t { f32, bf16, int8 };

class MachineLimits {
 public:
  // One thread is timed by the processor time that it gets, several by the clock.
  static Result<MachineLimits> make(int threads, CpuIsa isa);

  double seconds_of(const std::function<void()>& work) const;
  double bandwidth();                  // bytes per second that all threads read from memory
  double peak(Arithmetic arithmetic);  // operations per second of all threads

 private:
  MachineLimits(int threads, CpuIsa isa, Buffer memory)
      : pool_(std::make_unique<ThreadPool>(threads)), isa_(isa), memory_(std::move(memory)) {}

  std::unique_ptr<ThreadPool> pool_;
  CpuIsa isa_;
  Buffer memory_;
};

}  // namespace octavo
