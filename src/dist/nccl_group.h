// Ranks whose values lie on GPUs, over NCCL, beside a group over the hosts' memory: what are messages between
// programs (broadcast() of a vector, barrier()) goes there, and who dies is found out there.
//
// Sums are those of the other groups, to the bit. NCCL adds up in an order that depends on its algorithm and
// on where in a message a number stands, and so on the batch. Of two ranks that is one order; of more, each
// rank gets all values and adds them up itself.
#pragma once

#include <memory>

#include "dist/nccl_library.h"
#include "dist/process_group.h"

namespace octavo {

// What the group needs of the device.
class NcclDevice {
 public:
  virtual ~NcclDevice() = default;

  virtual void* stream() = 0;  // cudaStream_t: of the values
  // Memory of the device, kept for the next call. Error: there is not enough.
  virtual Result<std::byte*> scratch(std::size_t bytes) = 0;
  // Enqueues sum[i] = parts[i] + parts[count + i] + .., in this order, of `parts_count` parts.
  virtual void add_parts(float* sum, const float* parts, std::size_t count, int parts_count) = 0;
};

class NcclGroup final : public ProcessGroup {
 public:
  // Collective. host: of the same ranks; it and the device live longer. Errors: NCCL's, of any rank.
  static Result<std::unique_ptr<NcclGroup>> create(std::shared_ptr<const NcclLibrary> nccl,
                                                   NcclDevice& device, ProcessGroup& host);
  ~NcclGroup() override;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // These four: of the device's memory, enqueued on its stream.
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void broadcast(std::span<std::byte> message) override;
  void broadcast(std::vector<std::byte>& message) override { host_.broadcast(message); }
  void barrier() override { host_.barrier(); }
  void set_timeout_ms(int ms) override { host_.set_timeout_ms(ms); }
  // Also what NCCL has found out since.
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
