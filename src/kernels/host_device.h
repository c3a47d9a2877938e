// Device of the host backends: the main memory of this machine.
#pragma once

#include <string>
#include <string_view>

#include "kernels/device.h"

namespace octavo {

class HostDevice : public Device {
 public:
  explicit HostDevice(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::size_t memory_bytes() const override;
  std::size_t available_bytes() const override;  // memory that is available without swapping
  bool shares_host_memory() const override { return true; }
  Result<Buffer> allocate(std::size_t bytes) override { return allocate_host(bytes); }
  Result<Buffer> allocate_staging(std::size_t bytes) override { return allocate_host(bytes); }
  void upload(Stream& stream, const View& device, const void* host) override;
  void download(Stream& stream, void* host, const View& device) override;
  void copy(Stream& stream, const View& to, const View& from) override;
  void clear(Stream& stream, const View& device) override;

 private:
  std::string name_;
};

// Returns true if each row of this host view is contiguous, where a row contains all elements with the same
// first index. Gaps between rows are allowed.
bool rows_contiguous(const View& view);

// Checks that every index (i32 or i64, in host memory) is in [0, limit). `what` names the indices in the
// error message.
void check_indices(std::string_view what, const View& indices, std::int64_t limit);

// Checks that `starts` (i32, in host memory) ascends strictly and is in [0, limit].
void check_segments(std::string_view what, const View& starts, std::int64_t limit);

}  // namespace octavo
