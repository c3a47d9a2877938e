// Access to the memory of the emulated device, for tests. The memory is host memory that only kernels and
// copies can access, with an inaccessible page after each allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace octavo::cuda::emulated {

// Tests can read and write device memory while such an object exists.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

// Save and restore the contents of all device memory. The memory must be accessible (DeviceMemoryAccess),
// and nothing may be allocated or released between the two calls.
std::size_t device_bytes();
void copy_device_contents(std::vector<std::byte>& contents);
void set_device_contents(const std::vector<std::byte>& contents);

// Bytes of device memory that a CUDA graph takes, and bytes that the code of a kernel takes from its first
// launch on.
constexpr std::size_t kGraphBytes = std::size_t{1} << 20, kCodeBytes = std::size_t{256} << 10;

// Bytes of shared memory that a thread block may use on devices with wgmma (Hopper), and on other devices (as
// on compute capabilities 8.6, 8.9 and 12.0).
constexpr std::size_t kSharedOfHopper = std::size_t{227} << 10, kSharedOfOthers = std::size_t{99} << 10;
std::size_t shared_bytes_max();  // on the device that was opened last

// Number of emulated devices. Each process has the memory of one of them.
constexpr int kDevicesOfHost = 4;

// Sets whether devices that are opened later support wgmma; the default is false.
void set_wgmma(bool valid);

// While it is true, all allocations of device memory fail, as if other programs used all of it. In other
// processes, they fail while the folder $EMULATED_GPU_FULL has a file with the number of the process.
void set_memory_full(bool full);

// Numbers of launches and copies in all streams: work_done() counts those that have run, and work_waiting()
// counts those that have not run yet.
std::uint64_t work_done();
std::uint64_t work_waiting();

}  // namespace octavo::cuda::emulated
