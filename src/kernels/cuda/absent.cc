// Replaces the CUDA backend in builds without CUDA. Functions return an error or null, or end the process.
#include "base/check.h"
#include "kernels/backends.h"
#include "kernels/cuda_collectives.h"
#include "kernels/cuda_host_weights.h"
#include "kernels/cuda_ipc.h"
#include "kernels/kv_exchange.h"

namespace octavo {

const KvExchange* cuda_kv_exchange() { return nullptr; }

Result<Backend> make_cuda_backend(int) {
  return invalid("device", "this build has no CUDA backend: build Octavo with the preset cuda");
}

Result<CudaMemoryHandle> cuda_share(const void*) { CHECK(false, "this build has no CUDA backend"); }
Result<Buffer> cuda_open_shared(const CudaMemoryHandle&, std::size_t) {
  CHECK(false, "this build has no CUDA backend");
}
Result<WeightPtr> cuda_move_to_host(Device&, WeightPtr) { CHECK(false, "this build has no CUDA backend"); }
Result<Backend*> cuda_host_backend(Device&, int) { CHECK(false, "this build has no CUDA backend"); }
WeightPtr cuda_compute_on_host(WeightPtr, DType) { CHECK(false, "this build has no CUDA backend"); }
void* cuda_stream_handle(Stream&) { CHECK(false, "this build has no CUDA backend"); }
void cuda_add_parts(Stream&, float*, const float*, std::int64_t, int, int) {
  CHECK(false, "this build has no CUDA backend");
}

}  // namespace octavo
