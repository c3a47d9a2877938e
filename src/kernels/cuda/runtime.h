// The little that the backend needs of CUDA's runtime, so that host code can be built and tested where there
// is none: runtime.cc is the device's, emulator/runtime.cc the tests'.
//
// Errors of a running device cannot be recovered from: a function that returns nothing ends the process with
// CUDA's own text.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "kernels/cuda/kernels.h"

namespace octavo::cuda::runtime {

struct DeviceInfo {
  std::string name;
  int processors = 0;  // streaming multiprocessors
  std::size_t memory_bytes = 0;
};

// Makes the first device ready. Errors: no driver, no device, one that is too old, each in a line that says
// so.
Result<DeviceInfo> open();
std::size_t free_bytes();

Result<void*> allocate(std::size_t bytes);  // zeroed; nullptr for none
void release(void* device);
// Memory of the host that copies need not wait for.
Result<void*> allocate_pinned(std::size_t bytes);
void release_pinned(void* host);

StreamHandle make_stream();
void destroy_stream(StreamHandle stream);
void synchronize(StreamHandle stream);
// `host` may be used again when the stream got there.
void copy_to_device(StreamHandle stream, void* device, const void* host, std::size_t bytes);
void copy_to_host(StreamHandle stream, void* host, const void* device, std::size_t bytes);

}  // namespace octavo::cuda::runtime
