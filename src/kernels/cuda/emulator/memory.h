// The emulated device's memory: this machine's, but out of reach for everything that is not a kernel or a
// copy, and with a page that nobody may touch right after each allocation.
#pragma once

#include <cstddef>

namespace octavo::cuda::emulated {

// While one of these lives, device memory can be read and written.
class DeviceMemoryAccess {
 public:
  DeviceMemoryAccess();
  ~DeviceMemoryAccess();
  DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
  DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;
};

}  // namespace octavo::cuda::emulated
