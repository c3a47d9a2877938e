// The name of the GPU, for programs that do not compute on it.
#pragma once

#include <string>

namespace octavo {

// Returns the name of the first GPU that the CUDA backend supports; "": none, or this build has no CUDA
// backend. Unlike make_cuda_backend(), it creates no CUDA context, so it takes no memory of the device.
std::string gpu_name();

}  // namespace octavo
