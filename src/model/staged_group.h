// A process group whose values are in the memory of a device, such as a GPU. It copies them to host memory,
// where another group of the same ranks exchanges them, and back. So the values are added in the order of
// that group, and several ranks may share one device.
//
// Each operation waits until the device has computed the values, so it cannot be part of a recorded step.
#pragma once

#include "dist/rank_layout.h"
#include "kernels/ops.h"

namespace octavo {

class StagedGroup final : public ProcessGroup {
 public:
  // `host` is a group of the same ranks, for host memory. Both arguments must outlive this group.
  StagedGroup(Backend& backend, ProcessGroup& host) : backend_(backend), host_(host) {}
  ~StagedGroup() override { backend_.stream->synchronize(); }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // These functions take values in the memory of the device. They enqueue the copy of the result to the
  // device, and do not wait for it.
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void gather_rows(std::span<std::byte> rows, std::size_t row_bytes, std::span<const std::size_t> starts,
                   int to) override;
  void broadcast(std::span<std::byte> message) override;
  // Takes host memory.
  void broadcast(std::vector<std::byte>& message) override { host_.broadcast(message); }
  void barrier() override { host_.barrier(); }
  void set_timeout_ms(int ms) override { host_.set_timeout_ms(ms); }
  // Returns the group's failure, or the error that there is not enough memory for the copies.
  const std::optional<Error>& failure() const override { return failure_ ? failure_ : host_.failure(); }

 private:
  bool reserve(std::size_t bytes);
  std::span<std::byte> staged(std::size_t bytes) const {
    return {static_cast<std::byte*>(memory_.data()), bytes};
  }
  // Copy between a device's values and memory_, from this offset on. download() also waits for the copy.
  void enqueue_download(std::span<const std::byte> values, std::size_t offset);
  void download(std::span<const std::byte> values, std::size_t offset);
  void upload(std::span<std::byte> values, std::size_t offset);

  Backend& backend_;
  ProcessGroup& host_;
  Buffer memory_;  // host memory that the device can copy from and to; grows to the largest message
  std::optional<Error> failure_;
};

// Returns groups for values in the memory of the backend's device. `host` must outlive them.
RankGroups staged_groups(Backend& backend, const RankGroups& host);

}  // namespace octavo
