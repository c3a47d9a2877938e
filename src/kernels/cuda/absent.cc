// Replaces the CUDA backend in builds without CUDA.
#include "kernels/backends.h"
#include "kernels/gpu_name.h"
#include "kernels/kv_exchange.h"

namespace octavo {

const KvExchange* cuda_kv_exchange() { return nullptr; }

std::string gpu_name() { return ""; }

Result<Backend> make_cuda_backend() {
  return invalid("device", "this build has no CUDA backend: build Octavo with the preset cuda");
}

}  // namespace octavo
