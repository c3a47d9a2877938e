// Memory of the CUDA backend that another process of this host opens (CUDA IPC).
#pragma once

#include <array>
#include <cstddef>

#include "base/error.h"
#include "tensor/buffer.h"

namespace octavo {

// Identifies memory of a process. Other processes can open it as long as it is allocated.
struct CudaMemoryHandle {
  std::array<std::byte, 64> bytes{};
};

// `memory` is the begin of a buffer of Device::allocate. Returns unavailable if the driver cannot share it.
Result<CudaMemoryHandle> cuda_share(const void* memory);

// Opens `bytes` bytes of memory of another process; the buffer closes it. Returns unavailable if the devices
// cannot access each other's memory.
Result<Buffer> cuda_open_shared(const CudaMemoryHandle& handle, std::size_t bytes);

}  // namespace octavo
