// Access to the emulated device's memory for tests. It is host memory that only kernels and copies can
// access, with an inaccessible page after each allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::cuda::emulated {

// While one of these lives, device memory can be read and written.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

// Saves and restores the contents of all device memory. No allocation or release may happen in between. Valid
// only while memory is accessible.
std::size_t device_bytes();
void copy_device_contents(std::vector<std::byte>& contents);
void set_device_contents(const std::vector<std::byte>& contents);

// Device memory used beside allocations: by a graph, and by the code of a kernel from its second launch on.
constexpr std::size_t kGraphBytes = std::size_t{1} << 20, kCodeBytes = std::size_t{256} << 10;

// Whether devices that are opened from now on have Hopper's products of a warpgroup; they begin without.
void set_wgmma(bool there);

// Launches and copies that all streams have done so far, and those that still wait in them.
std::uint64_t work_done();
std::uint64_t work_waiting();

}  // namespace octavo::cuda::emulated
