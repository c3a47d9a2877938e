// Converts views, norms and caches to the parameters of kernels.
#pragma once

#include "kernels/cuda/device.h"

namespace octavo::cuda {

// Declares run_NAME for each row of operators/list.h. Operators that this backend lacks are not defined.
#define OCTAVO_DECLARE_RUN(name, Args, backends) void run_##name(Stream& stream, const Args& args);
OCTAVO_OPERATORS(OCTAVO_DECLARE_RUN)
#undef OCTAVO_DECLARE_RUN

inline Rows rows_of(const View& view) {
  if (!view) return {};
  return {view.data, format_of(view.dtype), view.stride[0]};
}
template <class T>
T* data_of(const View& view) {
  return view ? view.as<T>() : nullptr;
}
inline NormParams params_of(const Norm& norm) {
  return {norm.kind, norm.eps, data_of<float>(norm.weight), data_of<float>(norm.bias)};
}
inline const WeightRows& numbers_of(const Weight& weight) {
  return static_cast<const CudaWeight&>(weight).numbers();
}

inline KvLayout layout_of(const KvSpec& spec, std::int64_t stride_bytes) {
  return {stride_bytes,
          spec.kv_heads,
          spec.head_dim,
          spec.block_size,
          static_cast<int>(size_of(spec.dtype)),
          spec.values_in_keys,
          spec.index_dim,
          spec.dtype == DType::i8};
}
inline KvCache cache_of(const KvLayer& cache) {
  return {cache.data, layout_of(cache.spec, cache.stride_bytes), format_of(cache.spec.dtype)};
}

}  // namespace octavo::cuda
