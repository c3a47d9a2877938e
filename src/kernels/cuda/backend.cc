// The table of operators of the CUDA backend.
#include <algorithm>

#include "kernels/backends.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/key_widths.h"
#include "kernels/cuda_collectives.h"
#include "kernels/cuda_ipc.h"
#include "kernels/kv_exchange.h"
#include "kernels/kv_quant.h"

namespace octavo {
namespace cuda {
namespace {

// Activations have the format of the weights, because tensor cores support both 16-bit formats.
DType activation_of(DType stored) { return stored; }

std::int64_t kv_block_bytes(const KvSpec& spec) { return layout_of(spec, 0).block_bytes(); }

Result<> supports(const KvSpec& spec, int q_heads) {
  const bool latent = spec.values_in_keys > 0, rows = spec.shared_rows();
  if (rows && (spec.kv_heads != 1 || bits_of(spec.dtype) <= 8))
    return field_failure(
        "kv_cache_dtype", ErrorCode::unsupported,
        "attention that uses its keys as values needs float32, float16 or bfloat16 and one key head");
  if (const int most = rows     ? kMaxRowDim + spec.index_dim
                       : latent ? kMaxLatentKey
                                : kMaxKey;
      spec.head_dim < 8 || spec.head_dim % 8 != 0 || spec.head_dim > most)
    return field_failure(latent ? "kv_lora_rank" : "head_dim", ErrorCode::unsupported,
                         "{} is not supported on CUDA: must be a multiple of 8, at most {}", spec.head_dim,
                         most);
  if (latent && !rows && (spec.kv_heads != 1 || spec.values_in_keys >= spec.head_dim))
    return field_failure(
        "kv_lora_rank", ErrorCode::unsupported,
        "{} must be less than the keys' {} elements, and the number of key heads, {}, must be 1",
        spec.values_in_keys, spec.head_dim, spec.kv_heads);
  if (spec.index_dim > 0 && !rows && (!latent || spec.index_dim + spec.values_in_keys >= spec.head_dim))
    return field_failure("index_head_dim", ErrorCode::unsupported,
                         "{0} plus the latents' {2} must be below the keys' {1} elements", spec.index_dim,
                         spec.head_dim, spec.values_in_keys);
  if (spec.block_size < 16 || spec.block_size % 16 != 0)
    return invalid("block_size", "{} is not a multiple of 16", spec.block_size);
  if (spec.rate < 1 || spec.block_size % spec.rate != 0)
    return invalid("block_size", "{} is not a multiple of the {} tokens of an entry", spec.block_size,
                   spec.rate);
  if (spec.kv_heads < 1 || q_heads < 1 || q_heads % spec.kv_heads != 0)
    return invalid("num_key_value_heads", "{} does not divide {} query heads", spec.kv_heads, q_heads);
  return check_kv_format(spec, "CUDA");
}

Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device& device, const AttentionLimits& limits) {
  TRY(auto plan, CudaAttentionPlan::make(static_cast<CudaDevice&>(device), limits));
  return plan;
}

void plan_attention(Stream& stream, const AttentionShape& shape, AttentionPlan& plan) {
  static_cast<CudaAttentionPlan&>(plan).fill(cuda_stream(stream), shape);
}

Result<> reserve_sampling(Device& device, std::int64_t rows, std::int64_t vocab) {
  return static_cast<CudaDevice&>(device).stream().reserve_scratch(static_cast<std::size_t>(rows * vocab) *
                                                                   sizeof(float));
}

// Exports and imports use a separate CUDA stream.
constexpr KvExchange kKvExchange{
    .layout = "rows",
    .joins = true,
    .export_block =
        [](const KvLayer& cache, std::int64_t block, std::span<std::byte> out) {
          runtime::copy_at_once(out.data(), cache.data + block * cache.stride_bytes, out.size());
        },
    .import_block =
        [](const KvLayer& cache, std::int64_t block, std::span<const std::byte> bytes) {
          runtime::copy_at_once(cache.data + block * cache.stride_bytes, bytes.data(), bytes.size());
        }};

constexpr bool has(Need need) {
#define OCTAVO_IN_all true
#define OCTAVO_IN_host false
#define OCTAVO_IN_device true
#define OCTAVO_HAS(name, of, backends) OCTAVO_IN_##backends,
  constexpr bool kHas[] = {OCTAVO_OPERATORS(OCTAVO_HAS) OCTAVO_FORMS(OCTAVO_HAS)};
  return kHas[static_cast<std::size_t>(need)];
#undef OCTAVO_HAS
#undef OCTAVO_IN_all
#undef OCTAVO_IN_host
#undef OCTAVO_IN_device
}

#define OCTAVO_RUN_all(name) run_##name
#define OCTAVO_RUN_host(name) nullptr
#define OCTAVO_ROW(name, Args, backends) .name = OCTAVO_RUN_##backends(name),
constexpr Ops kCudaOps{.has = has,
                       .activation = activation_of,
                       .prepare = prepare,
                       .kv_block_bytes = kv_block_bytes,
                       .supports = supports,
                       .make_attention_plan = make_attention_plan,
                       .plan_attention = plan_attention,
                       .reserve_sampling = reserve_sampling,
                       OCTAVO_OPERATORS(OCTAVO_ROW)};
#undef OCTAVO_ROW
#undef OCTAVO_RUN_all
#undef OCTAVO_RUN_host

}  // namespace
}  // namespace cuda

void* cuda_stream_handle(Stream& stream) { return cuda::handle_of(stream); }

void cuda_add_parts(Stream& stream, float* sum, const float* parts, std::int64_t count, int ranks, int own) {
  cuda::add_parts(cuda::handle_of(stream), sum, parts, count, ranks, own);
}

Result<CudaMemoryHandle> cuda_share(const void* memory) {
  TRY(const cuda::runtime::IpcHandle handle, cuda::runtime::share(const_cast<void*>(memory)));
  return CudaMemoryHandle{handle};
}
Result<Buffer> cuda_open_shared(const CudaMemoryHandle& handle, std::size_t bytes) {
  TRY(void* memory, cuda::runtime::open_shared(handle.bytes));
  return Buffer(memory, bytes, [](void* opened, std::size_t) { cuda::runtime::close_shared(opened); });
}

const KvExchange* cuda_kv_exchange() { return &cuda::kKvExchange; }

Result<Backend> make_cuda_backend(int number) {
  TRY(cuda::runtime::DeviceInfo info, cuda::runtime::open(number));
  auto stream = std::make_unique<cuda::CudaStream>(info);
  TRY_VOID(stream->reserve_products());
  auto device = std::make_unique<cuda::CudaDevice>(std::move(info), *stream);
  return Backend{
      .name = "cuda", .ops = cuda::kCudaOps, .device = std::move(device), .stream = std::move(stream)};
}

}  // namespace octavo
