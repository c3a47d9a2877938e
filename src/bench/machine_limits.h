// Measures the limits of a machine with minimal code: memory bandwidth and arithmetic. `octavo bench ops`
// compares operators with these limits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "base/thread_pool.h"
#include "kernels/backends.h"
#include "tensor/buffer.h"

namespace octavo {

// Instruction type that limits an operator: f32 fused multiply-adds, dot products of bf16 pairs, or dot
// products of 4 bytes. CPUs without dot products use f32.
enum class Arithmetic : std::uint8_t { f32, bf16, int8 };

// Returns the instruction set of this name, or the best one if `wanted` is empty. Returns an error if the
// CPU or this build does not support the instruction set.
Result<CpuIsa> usable_isa(std::string_view wanted = {});

class MachineLimits {
 public:
  virtual ~MachineLimits() = default;
  virtual double seconds_of(const std::function<void()>& work) = 0;
  virtual double bandwidth() = 0;                  // bytes per second
  virtual double peak(Arithmetic arithmetic) = 0;  // operations per second; 0: unknown
};

// Limits of this host when all threads read memory or compute multiply-adds.
class HostLimits final : public MachineLimits {
 public:
  // threads 0: all processors that this process may use. Measures CPU time for one thread, and wall time
  // for several threads.
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

// Bandwidth of an asynchronous device, measured by a copy within its memory; each byte counts as a read and
// a write. Arithmetic is not measured.
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
