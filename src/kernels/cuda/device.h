// Device, stream, weights and plans of the CUDA backend, over runtime.h.
#pragma once

#include <memory>
#include <optional>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/ops.h"

namespace octavo::cuda {

class CudaStream final : public Stream {
 public:
  CudaStream() : handle_(runtime::make_stream()) {}
  ~CudaStream() override { runtime::destroy_stream(handle_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void synchronize() override {
    runtime::synchronize(handle_);
    ++waits_;
  }
  StreamHandle handle() const { return handle_; }
  // How often somebody has waited: what was enqueued at an earlier count has happened.
  std::uint64_t waits() const { return waits_; }

  // Working memory of one operator; grows to the largest that was asked for and stays.
  void* scratch(std::size_t bytes);

 private:
  StreamHandle handle_;
  std::uint64_t waits_ = 0;
  Buffer scratch_;
};

// Operators of this backend are only ever called with its own stream.
inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }
inline StreamHandle handle_of(Stream& stream) { return cuda_stream(stream).handle(); }

class CudaDevice final : public Device {
 public:
  CudaDevice(runtime::DeviceInfo info, CudaStream& stream) : info_(std::move(info)), stream_(stream) {}

  std::string name() const override { return info_.name; }
  std::size_t memory_bytes() const override { return info_.memory_bytes; }
  std::size_t available_bytes() const override { return runtime::free_bytes(); }
  bool shares_host_memory() const override { return false; }
  Result<Buffer> allocate(std::size_t bytes) override;
  void upload(Stream& stream, const View& device, const void* host) override;
  void download(Stream& stream, void* host, const View& device) override;

  int processors() const { return info_.processors; }
  CudaStream& stream() { return stream_; }

 private:
  runtime::DeviceInfo info_;
  CudaStream& stream_;
};

// Row-major, columns padded with zeros (kWeightColumns).
class CudaWeight final : public Weight {
 public:
  CudaWeight(std::int64_t rows, std::int64_t cols, std::int64_t stride, DType format, Buffer data)
      : Weight(rows, cols, format, data.bytes()), stride_(stride), data_(std::move(data)) {}
  Rows numbers() const;

 private:
  std::int64_t stride_;
  Buffer data_;
};

// The schedule and the step's tables, in one piece of memory on the host and one on the device.
class CudaAttentionPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<CudaAttentionPlan>> make(CudaDevice& device, const AttentionLimits& limits);
  ~CudaAttentionPlan() override { runtime::release_pinned(host_); }

  void fill(CudaStream& stream, const AttentionShape& shape);
  // What the plan gives to a layer's attention.
  void describe(AttentionParams& params) const;

 private:
  CudaAttentionPlan(const AttentionLimits& limits, std::int64_t blocks_wanted, std::int64_t states)
      : limits_(limits), schedule_(limits, blocks_wanted, states) {}
  template <class T>
  const T* stage(std::span<const T> items);
  std::size_t most_bytes() const;

  AttentionLimits limits_;
  AttentionSchedule schedule_;
  std::byte* host_ = nullptr;
  std::size_t staged_ = 0;
  std::optional<std::uint64_t> sent_;  // CudaStream::waits() when `host_` was last sent off
  Buffer device_, states_;
  AttentionParams step_{};  // the addresses of this step's tables
  std::vector<std::int32_t> tables_;
};

Format format_of(DType type);

}  // namespace octavo::cuda
