// Device, stream, weights and attention plans of the CUDA backend. They call CUDA only through runtime.h.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/ops.h"
#include "kernels/staging.h"

namespace octavo::cuda {

using HostFunction = std::function<void()>;

class CudaRecording final : public Recording {
 public:
  // The graph calls `functions` (CudaStream::call_host), so the recording must stay until the stream has run
  // the graph.
  CudaRecording(runtime::GraphHandle graph, std::vector<std::unique_ptr<HostFunction>> functions)
      : graph_(graph), functions_(std::move(functions)) {}
  ~CudaRecording() override { runtime::destroy_graph(graph_); }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  runtime::GraphHandle graph() const { return graph_; }

 private:
  runtime::GraphHandle graph_;
  std::vector<std::unique_ptr<HostFunction>> functions_;
};

// Memory that grows. CUDA graphs may contain addresses of earlier buffers, so these are kept. The engine's
// first step is the largest one, so memory grows before graphs are captured.
class GrowingBuffer {
 public:
  // Returns at least `bytes` bytes; null if allocate(bytes) fails.
  template <class Allocate>
  void* at_least(std::size_t bytes, Allocate&& allocate) {
    if (buffers_.empty() || buffers_.back().bytes() < bytes) {
      // Doubling keeps all earlier buffers together smaller than the last one.
      auto grown = allocate(std::max(bytes, buffers_.empty() ? 0 : 2 * buffers_.back().bytes()));
      if (!grown) return nullptr;
      buffers_.push_back(std::move(*grown));
    }
    return buffers_.back().data();
  }

 private:
  std::vector<Buffer> buffers_;
};

Result<Buffer> pinned_buffer(std::size_t bytes);

class HostProducts;

class CudaStream final : public Stream {
 public:
  explicit CudaStream(const runtime::DeviceInfo& info);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void synchronize() override { runtime::synchronize(handle_); }
  bool asynchronous() const override { return true; }
  Mark mark() override;
  void wait(Mark mark) override;
  std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  void replay(const Recording& recording) override;
  StreamHandle handle() const { return handle_; }
  const Hopper& hopper() const { return hopper_; }

  // Enqueues a call of `function` on a thread of the host. The function must not use CUDA.
  void call_host(HostFunction function);
  // Products that the CPU computes; null until cuda_host_backend() is called.
  std::unique_ptr<HostProducts>& host_products() { return host_products_; }

  // Reserves working memory, which one operator at a time uses for states of attention or for the sampler's
  // copy of the logits. Call it before the first step, because CUDA graphs contain the address.
  Result<> reserve_scratch(std::size_t bytes);
  void* scratch(std::size_t bytes) const;
  // Returns memory for the rounded rows of one product. It grows when a product needs more.
  void* rounded_x(std::size_t bytes);
  // Reserves memory that all matrix products on Hopper share. Call it once, before the first operator.
  Result<> reserve_products();

 private:
  StreamHandle handle_;
  Hopper hopper_;
  // Ring of events: mark m is event m % size. If the event was overwritten, a wait for mark m waits for a
  // later mark. This is rare, because the ring has many more events than the two steps of Staging need.
  std::array<runtime::EventHandle, 256> events_{};
  Mark marks_ = 0;
  Buffer scratch_, products_;
  GrowingBuffer rounded_;
  bool recording_ = false;
  std::vector<std::unique_ptr<HostFunction>> recorded_;  // functions of the graph that is being captured
  std::unique_ptr<HostProducts> host_products_;
};

// `stream` must be a CudaStream, as in all operators of this backend.
inline CudaStream& cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream); }

KvLayout layout_of(const KvSpec& spec, std::int64_t stride_bytes);

class CudaDevice final : public Device {
 public:
  CudaDevice(runtime::DeviceInfo info, CudaStream& stream) : info_(std::move(info)), stream_(stream) {}

  std::string name() const override { return info_.name; }
  std::size_t memory_bytes() const override { return info_.memory_bytes; }
  std::size_t available_bytes() const override { return runtime::free_bytes(); }
  bool shares_host_memory() const override { return false; }
  int devices_of_host() const override { return info_.devices_of_host; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Buffer> allocate_staging(std::size_t bytes) override;
  void upload(Stream& stream, const View& device, const void* host) override;
  void download(Stream& stream, void* host, const View& device) override;
  void copy(Stream& stream, const View& to, const View& from) override;
  void clear(Stream& stream, const View& device) override;

  int processors() const { return info_.processors; }
  bool hopper() const { return info_.wgmma; }
  CudaStream& stream() { return stream_; }
  Staging& weight_staging() { return weight_staging_; }

 private:
  runtime::DeviceInfo info_;
  CudaStream& stream_;
  Staging weight_staging_;
};

class CudaWeight final : public Weight {
 public:
  // `like` has the format and sizes of the rows. Its addresses are replaced by addresses in `data`.
  CudaWeight(std::int64_t rows, std::int64_t cols, DType activation, const WeightRows& like, Buffer data)
      : Weight(rows, cols, activation, data.bytes()), data_(std::move(data)), numbers_(like) {
    numbers_.data = static_cast<const std::byte*>(data_.data());
  }
  // A matrix that the CPU multiplies, for products of experts only (HostProducts).
  CudaWeight(DType activation, WeightPtr host)
      : Weight(host->rows(), host->cols(), activation, host->bytes()), host_(std::move(host)) {}
  const WeightRows& numbers() const {
    CHECK(host_ == nullptr, "the CPU has this matrix, and only grouped_matmul can use it");
    return numbers_;
  }
  const Weight* host() const { return host_.get(); }

 private:
  Buffer data_;
  WeightRows numbers_;
  WeightPtr host_;  // matrix of the CPU backend; null: the GPU multiplies
};

// Copies a matrix of a checkpoint to the device. Numbers keep their format if products support the format;
// otherwise they become f32. Codes of quantised matrices do not change, unless the size of a quantisation
// group is not a multiple of 8 columns: then they become numbers in the format of the activations. Returns
// unsupported if parts do not fit together. Also returns errors of Device::allocate.
Result<WeightPtr> prepare(Device& device, const MatrixSource& source);

// Schedule and tables of a step's attention, in one allocation. In a step that is captured in a CUDA graph,
// all offsets depend only on the number of sequences, except offsets inside the block tables, which are at
// the end.
class CudaAttentionPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<CudaAttentionPlan>> make(CudaDevice& device, const AttentionLimits& limits);
  void fill(CudaStream& stream, const AttentionShape& shape);
  // tables() has device addresses of the step's tables. work() returns the work of a layer, with memory for
  // the states of pieces.
  SequenceTables tables() const { return tables_on_device_; }
  AttentionWork work() const;
  // Returns memory for the rotated queries of a layer, if KvSpec::rotated().
  void* rotated_queries() const;
  // Sets the memory for the scores of an indexer (sparse attention). When the indexer has finished,
  // attention uses the same memory.
  void describe_scores(ChooseParams& params) const;
  std::int64_t sequences() const { return sequences_; }
  int window() const { return limits_.window; }
  std::int64_t max_length() const { return limits_.max_length; }
  bool causal() const { return limits_.causal; }

 private:
  CudaAttentionPlan(CudaDevice& on, const AttentionLimits& limits, std::int64_t blocks_at_a_time,
                    std::int64_t states)
      : on_(on), limits_(limits), schedule_(limits, blocks_at_a_time, states, on.hopper()) {}
  template <class T>
  const T* stage(std::span<const T> items);
  std::size_t most_bytes() const;
  // Bytes of scratch memory that states of pieces use at most. Rotated queries follow.
  std::size_t state_bytes() const;

  CudaDevice& on_;
  AttentionLimits limits_;
  AttentionSchedule schedule_;
  Staging staging_;
  std::size_t staged_ = 0;
  std::int64_t sequences_ = 0, longest_ = 0;  // number of sequences of the current step, and tokens of the
                                              // longest one
  Buffer device_;
  SequenceTables tables_on_device_{};  // of the current step
  AttentionWork work_{};
  std::vector<std::int32_t> tables_;
  std::vector<std::int64_t> table_starts_;
};

}  // namespace octavo::cuda
