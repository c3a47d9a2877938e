// Replaces the CUDA backend in builds without CUDA. Every function returns an error or null.
#include "kernels/backends.h"
#include "kernels/kv_exchange.h"

namespace octavo {

const KvExchange* cuda_kv_exchange() { return nullptr; }

Result<Backend> make_cuda_backend(int) {
  return invalid("device", "this build has no CUDA backend: build Octavo with the preset cuda");
}

}  // namespace octavo
