// A process group whose values are on GPUs; it uses NCCL. A second group over host memory sends messages
// between the processes (broadcast() of a vector, barrier()) and detects dead ranks.
//
// Sums are bit-identical to sums of the other process groups. NCCL adds in an order that depends on its
// algorithm and on the position in the message, and therefore on the batch. With two ranks there is only
// one order, so NCCL adds. With more ranks, each rank gathers all values and adds them itself.
#pragma once

#include <memory>

#include "dist/nccl_library.h"
#include "dist/process_group.h"

namespace octavo {

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;

  virtual void* stream() = 0;  // CUDA stream that computes the values
  // Returns device memory that stays allocated for later calls, or an error if memory does not suffice.
  virtual Result<std::byte*> scratch(std::size_t bytes) = 0;
  // Enqueues sum[i] = parts[i] + parts[count + i] + .., for parts_count parts, in this order.
  virtual void add_parts(float* sum, const float* parts, std::size_t count, int parts_count) = 0;
};

class NcclGroup final : public ProcessGroup {
 public:
  // All ranks must call it. `host` is a group of the same ranks; `host` and `device` must outlive this
  // group. Returns NCCL's error if NCCL fails on any rank.
  static Result<std::unique_ptr<NcclGroup>> create(std::shared_ptr<const NcclLibrary> nccl,
                                                   NcclDevice& device, ProcessGroup& host);
  ~NcclGroup() override;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // These four functions take device memory and enqueue work on the device's stream.
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void broadcast(std::span<std::byte> message) override;
  void broadcast(std::vector<std::byte>& message) override { host_.broadcast(message); }
  void barrier() override { host_.barrier(); }
  void set_timeout_ms(int ms) override { host_.set_timeout_ms(ms); }
  // Also reports NCCL's asynchronous errors.
  const std::optional<Error>& failure() const override;

 private:
  NcclGroup(std::shared_ptr<const NcclLibrary> nccl, NcclDevice& device, ProcessGroup& host)
      : nccl_(std::move(nccl)), device_(device), host_(host) {}
  bool works() const { return !failure(); }
  void note(const Result<>& done);
  void call(NcclLibrary::Code code, const char* name) { note(nccl_->check(code, name)); }
  void add_in_order(std::span<float> values);

  const std::shared_ptr<const NcclLibrary> nccl_;
  NcclDevice& device_;
  ProcessGroup& host_;
  NcclLibrary::Comm comm_ = nullptr;
  mutable std::optional<Error> failure_;
};

}  // namespace octavo
