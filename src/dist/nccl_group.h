// A process group whose values are on GPUs; it uses NCCL. A second group over host memory sends messages
// between the processes (broadcast() of a vector, barrier()) and detects dead ranks.
//
// Sums are bit-identical to sums of the other process groups. NCCL adds in an order that depends on its
// algorithm and on the position in the message, and therefore on the batch. With two ranks there is only
// one order, so NCCL adds. With more ranks, the ranks add in their order:
//
// - Small sums (one-shot): each rank gathers the values of all ranks and adds them.
// - Large sums (two-shot): each rank adds one part of the values, and then all ranks gather these parts.
//
// Operations are enqueued on the device's stream and may be captured in a CUDA graph. If a rank dies, the
// stream waits forever: the caller must check the ranks from another thread.
#pragma once

#include <memory>

#include "dist/nccl_library.h"
#include "dist/process_group.h"

namespace octavo {

class NcclDevice {
 public:
  virtual ~NcclDevice() = default;

  // Returns the CUDA stream that computes the values, and selects its device for the calling thread.
  virtual void* stream() = 0;
  // Returns device memory that stays allocated until this object ends, or an error if memory does not
  // suffice. Later calls with at most the same size return the same memory.
  virtual Result<std::byte*> scratch(std::size_t bytes) = 0;
  // Enqueues sum[i] = parts[i] + parts[count + i] + .., for `ranks` parts, in this order. Part `own` is in
  // `sum` instead of `parts`.
  virtual void add_parts(float* sum, const float* parts, std::size_t count, int ranks, int own) = 0;
};

struct NcclStart {
  int name = 0;              // number of this rank in error messages
  int timeout_ms = 120'000;  // time in which NCCL must connect the ranks; equal on all ranks
};

class NcclGroup final : public ProcessGroup {
 public:
  // All ranks must call it. `host` is a group of the same ranks, and must outlive this group. Returns the
  // failure of `host`; unavailable, with the ranks that NCCL has not connected in time; unsupported if NCCL
  // fails on a rank; or an error of NcclDevice. After unavailable, a thread may wait in NCCL until the
  // process ends.
  static Result<std::unique_ptr<NcclGroup>> create(std::shared_ptr<const NcclLibrary> nccl,
                                                   std::unique_ptr<NcclDevice> device, ProcessGroup& host,
                                                   const NcclStart& start = {});
  // Aborts if the group has failed. A communicator that works stays until the process ends: ncclCommDestroy
  // may wait for all ranks, and ranks end at different times.
  ~NcclGroup() override;

  // Frees the communicator without the other ranks. The group must not be used afterwards.
  void abort();

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // These functions take device memory and enqueue work on the device's stream.
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void gather_rows(std::span<std::byte> rows, std::size_t row_bytes, std::span<const std::size_t> starts,
                   int to) override;
  void broadcast(std::span<std::byte> message) override;
  void broadcast(std::vector<std::byte>& message) override { host_.broadcast(message); }
  void barrier() override { host_.barrier(); }
  void set_timeout_ms(int ms) override { host_.set_timeout_ms(ms); }
  // Also reports NCCL's asynchronous errors.
  const std::optional<Error>& failure() const override;

 private:
  NcclGroup(std::shared_ptr<const NcclLibrary> nccl, std::unique_ptr<NcclDevice> device, ProcessGroup& host)
      : nccl_(std::move(nccl)), device_(std::move(device)), host_(host) {}
  bool works() const { return !failure(); }
  void note(const Result<>& done);
  void call(NcclLibrary::Code code, const char* name) { note(nccl_->check(code, name)); }
  void send(std::span<const std::byte> values, int to);
  void receive(std::span<std::byte> values, int from);
  void enqueue_gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to);
  void add_in_one_shot(std::span<float> values);
  void add_in_two_shots(std::span<float> values);

  const std::shared_ptr<const NcclLibrary> nccl_;
  const std::unique_ptr<NcclDevice> device_;
  ProcessGroup& host_;
  NcclLibrary::Comm comm_ = nullptr;
  mutable std::optional<Error> failure_;
};

}  // namespace octavo
