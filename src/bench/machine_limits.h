// What a machine can do at most: bytes moved and arithmetic, each by the simplest work that does nothing
// else.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "base/thread_pool.h"
#include "kernels/backends.h"
#include "tensor/buffer.h"

namespace octavo {

// The arithmetic that bounds an operator: fused multiply-adds of f32, dot products of pairs of bf16 or of
// quads of bytes. Where the instruction set lacks the latter two, they are done in f32.
enum class Arithmetic : std::uint8_t { f32, bf16, int8 };

// The instruction set of this name, or, without one, the best that there is.
// Errors: this processor or this build lacks it.
Result<CpuIsa> usable_isa(std::string_view wanted = {});

class MachineLimits {
 public:
  virtual ~MachineLimits() = default;
  virtual double seconds_of(const std::function<void()>& work) = 0;
  virtual double bandwidth() = 0;                  // bytes per second
  virtual double peak(Arithmetic arithmetic) = 0;  // operations per second; 0: not known
};

// This machine's processors: reading, and multiplying and adding, on all threads.
class HostLimits final : public MachineLimits {
 public:
  // On as many threads as this process may use when 0. One thread is timed by the processor time that it
  // gets, several by the clock.
  static Result<HostLimits> make(int threads, CpuIsa isa);

  double seconds_of(const std::function<void()>& work) override;
  double bandwidth() override;
  double peak(Arithmetic arithmetic) override;

 private:
  HostLimits(int threads, CpuIsa isa, Buffer memory)
      : pool_(std::make_unique<ThreadPool>(threads)), isa_(isa), memory_(std::move(memory)) {}

  std::unique_ptr<ThreadPool> pool_;
  CpuIsa isa_;
  Buffer memory_;
};

// A device that works by itself: a copy from its memory to its memory, both directions counted. Arithmetic is
// not measured.
class DeviceLimits final : public MachineLimits {
 public:
  static Result<DeviceLimits> make(Backend& backend);

  double seconds_of(const std::function<void()>& work) override;
  double bandwidth() override;
  double peak(Arithmetic) override { return 0; }

 private:
  DeviceLimits(Backend& backend, Buffer from, Buffer to)
      : backend_(backend), from_(std::move(from)), to_(std::move(to)) {}

  Backend& backend_;
  Buffer from_, to_;
};

}  // namespace octavo
