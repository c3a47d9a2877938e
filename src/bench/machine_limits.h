// Limits of a machine: memory bandwidth and arithmetic, each measured by minimal code.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "base/thread_pool.h"
#include "kernels/backends.h"
#include "tensor/buffer.h"

namespace octavo {

// Arithmetic that limits an operator: fused multiply-adds of f32, dot products of bf16 pairs, or of byte
// quads. An instruction set without dot products uses f32.
enum class Arithmetic : std::uint8_t { f32, bf16, int8 };

// The instruction set of this name, or the best one if the name is empty. Error: this processor or this build
// does not support it.
Result<CpuIsa> usable_isa(std::string_view wanted = {});

class MachineLimits {
 public:
  virtual ~MachineLimits() = default;
  virtual double seconds_of(const std::function<void()>& work) = 0;
  virtual double bandwidth() = 0;                  // bytes per second
  virtual double peak(Arithmetic arithmetic) = 0;  // operations per second; 0: unknown
};

// Limits of this machine's processors: reads and multiply-adds on all threads.
class HostLimits final : public MachineLimits {
 public:
  // threads 0: all threads that this process may use. One thread is measured in processor time, several in
  // wall time.
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

// Bandwidth of an asynchronous device: a copy within its memory, reads plus writes. Arithmetic is not
// measured.
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
