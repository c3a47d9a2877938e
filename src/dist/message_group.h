// A process group over any transport. Its sums are bit-identical to those of SharedMemoryGroup.
#pragma once

#include "dist/process_group.h"
#include "dist/transport.h"

namespace octavo {

class MessageGroup final : public ProcessGroup {
 public:
  // `members` are the ranks of the transport that form the group, in order, including this process. Only
  // one thread may use the groups of a transport. The transport must outlive the group.
  MessageGroup(Transport& transport, std::vector<int> members);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void broadcast(std::vector<std::byte>& message) override;
  void broadcast(std::span<std::byte> message) override;
  void barrier() override;
  void set_timeout_ms(int ms) override { timeout_ms_ = ms; }
  const std::optional<Error>& failure() const override { return failure_; }

 private:
  void gather_and_add(std::span<float> values);
  void scatter_and_add(std::span<float> values);
  void add_in_order(std::span<float> mine, std::size_t stride);
  bool exchange();

  Transport& transport_;
  std::vector<int> members_;
  int rank_ = 0;
  int timeout_ms_ = 0;
  std::optional<Error> failure_;

  std::vector<Transport::Send> sends_;
  std::vector<Transport::Receive> receives_;
  std::vector<float> others_;
};

}  // namespace octavo
