// Access to the emulated device's memory, for tests. It is host memory that only kernels and copies can
// access, with an inaccessible page after each allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::cuda::emulated {

// While such an object exists, tests can read and write device memory.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

// Save and restore the contents of all device memory. The memory must be accessible, and nothing may be
// allocated or released between the two calls.
std::size_t device_bytes();
void copy_device_contents(std::vector<std::byte>& contents);
void set_device_contents(const std::vector<std::byte>& contents);

// Device memory in addition to allocations, in bytes: of a graph, and of a kernel's code after its first
// launch.
constexpr std::size_t kGraphBytes = std::size_t{1} << 20, kCodeBytes = std::size_t{256} << 10;

// Sets whether devices opened from now on have Hopper's warpgroup products; the default is false.
void set_wgmma(bool there);

// Numbers of launches and copies in all streams: those that have run, and those that wait.
std::uint64_t work_done();
std::uint64_t work_waiting();

}  // namespace octavo::cuda::emulated
