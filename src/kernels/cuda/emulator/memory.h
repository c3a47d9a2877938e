// What tests ask of the emulated device. Its memory is this machine's, but out of reach for everything that
// is not a kernel or a copy, and with a page that nobody may touch right after each allocation.
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

// What all device memory holds, and putting it back: nothing may be allocated or released meanwhile. Only
// while memory can be accessed.
std::size_t device_bytes();
void copy_device_contents(std::vector<std::byte>& contents);
void set_device_contents(const std::vector<std::byte>& contents);

// What the device's memory holds beside allocations: a graph takes as much as this, the code of a kernel from its first
// launch on the second.
constexpr std::size_t kGraphBytes = std::size_t{1} << 20, kCodeBytes = std::size_t{256} << 10;

// Whether devices that are opened from now on have Hopper's products of a warpgroup; they begin without.
void set_wgmma(bool there);

// Launches and copies that all streams have done so far, and those that still wait in them.
std::uint64_t work_done();
std::uint64_t work_waiting();

}  // namespace octavo::cuda::emulated
