// What collectives between GPUs need from the CUDA backend. In builds without this backend the functions end
// the process, because no stream exists for them.
#pragma once

#include <cstdint>

namespace octavo {

class Stream;

// Returns the cudaStream_t of a stream of the CUDA backend, and selects its device for the calling thread.
void* cuda_stream_handle(Stream& stream);

// Enqueues sum[i] = parts[i] + parts[count + i] + .., for `ranks` parts, in this order. Part `own` is in
// `sum` instead of `parts`.
void cuda_add_parts(Stream& stream, float* sum, const float* parts, std::int64_t count, int ranks, int own);

}  // namespace octavo
