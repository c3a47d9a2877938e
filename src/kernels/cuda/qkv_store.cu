// Splits the fused projection, normalises and rotates queries and keys, and writes queries to q_out and keys
// and values to the KV blocks. A warp processes one head of one token. In latent attention, a thread block
// processes one token.
#include "kernels/cuda/key_widths.h"
#include "kernels/cuda/rotation.h"
#include "kernels/cuda/views.h"
#include "kernels/operators/attention.h"

namespace octavo::cuda {
namespace {

enum Part : int { kQuery, kKey, kValue };

struct Head {
  Part part;
  int index;           // index of the head within the queries, keys or values
  int heads;           // number of heads of this type
  std::int64_t first;  // column of the first head of this type
};

__device__ Head head_of(const QkvStoreArgs& p, int head) {
  const int kv_heads = p.cache.spec.kv_heads;
  const std::int64_t dim = p.cache.spec.head_dim;
  if (head < p.q_heads) return {kQuery, head, p.q_heads, 0};
  if (head < p.q_heads + kv_heads) return {kKey, head - p.q_heads, kv_heads, p.q_heads * dim};
  return {kValue, head - p.q_heads - kv_heads, kv_heads, (p.q_heads + kv_heads) * dim};
}

// Returns the distance between the weights of two heads; 0: all heads have the same weights.
__device__ std::int64_t weight_stride(const Norm& norm) {
  return norm.weight.rank == 2 ? norm.weight.stride[0] : 0;
}

// Normalises a head; x[j] is its element lane + 32j, and 0 after its end. row: address of the first head of
// this type.
template <class T, int kPerLane>
__device__ void normalize(const Norm& norm, bool whole_row, const T* row, const Head& head, int dim,
                          float (&x)[kPerLane]) {
  if (norm.kind == NormKind::none) return;
  const std::int64_t count = whole_row ? std::int64_t{head.heads} * dim : dim;
  const T* values = whole_row ? row : row + element_at(head.index, dim, 0);
  float mean = 0;
  if (norm.kind == NormKind::layer) {
    for (std::int64_t i = lane(); i < count; i += kWarp) mean += to_float(values[i]);
    mean = warp_sum(mean) / static_cast<float>(count);
  }
  float squares = 0;
  for (std::int64_t i = lane(); i < count; i += kWarp) {
    const float d = to_float(values[i]) - mean;
    squares = fmaf(d, d, squares);
  }
  const float scale = norm.kind == NormKind::affine
                          ? 1.0f
                          : 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(count) + norm.eps);
  const std::int64_t first = element_at(head.index, whole_row ? dim : weight_stride(norm), 0);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const int i = lane() + j * kWarp;
    if (i >= dim) break;
    x[j] = (x[j] - mean) * scale * items<float>(norm.weight)[first + i];
    if (norm.bias) x[j] += items<float>(norm.bias)[first + i];
  }
}

// Returns element i of the rotated head. head: all elements before the rotation.
__device__ float rotated(const Rope& rope, std::int64_t token, const float* head, int i) {
  const int half = rope.rotary_dim / 2;
  if (i >= rope.rotary_dim) return head[i];
  const int pair = rope.interleaved ? i / 2 : i % half;
  const bool second = rope.interleaved ? i % 2 == 1 : i >= half;
  const float a = head[rope.interleaved ? 2 * pair : pair];
  const float b = head[rope.interleaved ? 2 * pair + 1 : pair + half];
  const float c = element<float>(rope.cos, token, pair), s = element<float>(rope.sin, token, pair);
  return second ? fmaf(b, c, a * s) : fmaf(a, c, -(b * s));
}

// Returns the factor of an rms norm that follows the rotation. Some rotary embeddings scale, so the rotation
// may change the length of a head.
__device__ float rotated_scale(const Rope& rope, const Norm& norm, std::int64_t token, const float* head,
                               int dim) {
  float squares = 0;
  for (int i = lane(); i < dim; i += kWarp) {
    const float value = rotated(rope, token, head, i);
    squares = fmaf(value, value, squares);
  }
  return 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(dim) + norm.eps);
}

template <class T>
__device__ void put(std::byte* vector, std::int64_t i, float value) {
  reinterpret_cast<T*>(vector)[i] = from_float<T>(value);
}

// Returns the magnitude of an element, for its vector's scale (kv_quant.h); infinity for NaN and infinity.
__device__ float magnitude(float value) {
  const float size = fabsf(value);
  return size <= 3.40282347e38f ? size : INFINITY;
}
__device__ float scale_of(float largest) { return largest == INFINITY ? NAN : largest / 127.0f; }

// Writes element i of a cached vector.
__device__ void put(Format format, std::byte* vector, std::int64_t i, float value, float scale) {
  switch (format) {
    case Format::f32:
      return put<float>(vector, i, value);
    case Format::f16:
      return put<F16>(vector, i, value);
    case Format::bf16:
      return put<Bf16>(vector, i, value);
    case Format::f8:
      return put<F8>(vector, i, value);
    default:  // default is Format::q8
      value = scale > 0 ? rintf(value / scale) : 0;
      reinterpret_cast<signed char*>(vector)[i] = static_cast<signed char>(fminf(fmaxf(value, -127), 127));
  }
}

// Writes a vector of 4-bit codes. x: the elements of lane(), as in qkv_store_kernel. whole: shared memory.
template <int kPerLane>
__device__ void put_codes(std::byte* vector, float* scale, const float (&x)[kPerLane], float* whole,
                          int dim) {
  __syncwarp();
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) whole[lane() + j * kWarp] = x[j];
  rotate_in_warp(whole, dim);
  float largest = 0;
  for (int i = lane(); i < dim; i += kWarp) largest = fmaxf(largest, magnitude(whole[i]));
  const float vector_scale = scale_of(warp_max(largest));
  if (lane() == 0) *scale = vector_scale;
  for (int i = lane(); i < dim / 2; i += kWarp)
    vector[i] = static_cast<std::byte>(kv_code(whole[2 * i], vector_scale) |
                                       kv_code(whole[2 * i + 1], vector_scale) << 4);
}

// kMaxDim: maximum width of a head.
template <class T, int kMaxDim>
__global__ void __launch_bounds__(kWarp) qkv_store_kernel(QkvStoreArgs p, KvCache cache) {
  wait_for_kernels();
  constexpr int kPerLane = kMaxDim / kWarp;
  OCTAVO_SHARED(float, whole, [kMaxDim]);
  const KvLayout& layout = cache.layout;
  const int dim = layout.head_dim;
  const std::int64_t token = block_x();
  const Head head = head_of(p, static_cast<int>(block_y()));
  const T* row = &element<T>(p.qkv, token, head.first);
  float x[kPerLane];
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const int i = lane() + j * kWarp;
    x[j] = i < dim ? to_float(row[element_at(head.index, dim, i)]) : 0;
  }
  const Norm& norm = head.part == kQuery ? p.q_norm : p.k_norm;
  if (head.part != kValue && !p.norm_rotated) normalize(norm, p.norm_whole_row, row, head, dim, x);
  if (head.part == kValue) normalize(p.v_norm, false, row, head, dim, x);
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) whole[lane() + j * kWarp] = x[j];
  __syncwarp();
  const bool norm_rotated = head.part != kValue && p.norm_rotated;
  const float scale = norm_rotated ? rotated_scale(p.rope, norm, token, whole, dim) : 1;

  float largest = 0;
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const int i = lane() + j * kWarp;
    if (i >= dim) break;
    x[j] = head.part == kValue ? whole[i] : rotated(p.rope, token, whole, i);
    if (norm_rotated)
      x[j] *= scale * items<float>(norm.weight)[element_at(head.index, weight_stride(norm), i)];
    largest = fmaxf(largest, magnitude(x[j]));
  }
  if (head.part == kQuery) {
    T* out = &element<T>(p.q_out, token, element_at(head.index, dim, 0));
#pragma unroll
    for (int j = 0; j < kPerLane; ++j)
      if (const int i = lane() + j * kWarp; i < dim) out[i] = from_float<T>(x[j]);
    return;
  }
  const int which = head.part == kValue ? 1 : 0;
  const std::int64_t slot = items<std::int64_t>(p.slots)[token], block = slot / layout.block_size,
                     offset = slot % layout.block_size;
  std::byte* vector = cache.data + layout.vector(block, which, head.index, offset);
  auto* const scale_address =
      reinterpret_cast<float*>(cache.data + layout.scale(block, which, head.index, offset));
  if (cache.format == Format::levels) return put_codes(vector, scale_address, x, whole, dim);
  float vector_scale = 1;
  if (layout.scaled) {
    vector_scale = scale_of(warp_max(largest));
    if (lane() == 0) *scale_address = vector_scale;
  }
#pragma unroll
  for (int j = 0; j < kPerLane; ++j)
    if (const int i = lane() + j * kWarp; i < dim) put(cache.format, vector, i, x[j], vector_scale);
}

constexpr int kLatentThreads = 256;

// Pair `pair` of the last `rotary` elements of a vector of `dim` elements; these elements are rotated.
struct Pair {
  std::int64_t first, second;  // indices of the two elements
  float c, s;
  __device__ Pair(const Rope& rope, std::int64_t token, std::int64_t pair, std::int64_t rotary,
                  std::int64_t dim)
      : first(dim - rotary + (rope.interleaved ? 2 * pair : pair)),
        second(rope.interleaved ? first + 1 : first + rotary / 2),
        c(element<float>(rope.cos, token, pair)),
        s(element<float>(rope.sin, token, pair)) {}
};

// key and partials must be in shared memory.
__device__ void store_key(const LatentStoreArgs& p, const KvCache& cache, std::int64_t token,
                          const float* key, float* partials) {
  const KvLayout& layout = cache.layout;
  const std::int64_t slot = items<std::int64_t>(p.slots)[token], block = slot / layout.block_size,
                     offset = slot % layout.block_size;
  __syncthreads();
  float scale = 1;
  if (layout.scaled) {
    float largest = 0;
    for (int i = thread(); i < layout.head_dim; i += kLatentThreads) largest = fmaxf(largest, magnitude(key[i]));
    scale = scale_of(block_max(largest, partials));
    if (thread() == 0) *reinterpret_cast<float*>(cache.data + layout.scale(block, 0, 0, offset)) = scale;
  }
  std::byte* vector = cache.data + layout.vector(block, 0, 0, offset);
  for (int i = thread(); i < layout.head_dim; i += kLatentThreads)
    put(cache.format, vector, i, key[i], scale);
}

template <class T>
__global__ void __launch_bounds__(kLatentThreads) latent_store_kernel(LatentStoreArgs p, KvCache cache) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  OCTAVO_SHARED(float, key, [kMaxLatentKey]);
  const KvLayout& layout = cache.layout;
  const std::int64_t token = block_x(), dim = layout.score_dim(), latent = layout.values_in_keys;
  const std::int64_t rotary = dim - latent, pairs = rotary / 2;

  const float* kv = &element<float>(p.kv, token, 0);
  float squares = 0;
  for (std::int64_t i = thread(); i < latent; i += kLatentThreads) squares = fmaf(kv[i], kv[i], squares);
  squares = block_sum(squares, partials);
  const float scale = 1.0f / sqrtf(squares / static_cast<float>(latent) + p.norm.eps);
  for (std::int64_t i = thread(); i < latent; i += kLatentThreads)
    key[i] = kv[i] * scale * items<float>(p.norm.weight)[i];
  for (std::int64_t i = thread(); i < layout.index_dim; i += kLatentThreads)
    key[dim + i] = to_float(element<T>(p.index_keys, token, i));
  for (std::int64_t i = thread(); i < pairs; i += kLatentThreads) {
    const Pair pair(p.rope, token, i, rotary, dim);
    const float a = kv[pair.first], b = kv[pair.second];
    key[pair.first] = fmaf(a, pair.c, -(b * pair.s));
    key[pair.second] = fmaf(b, pair.c, a * pair.s);
  }
  store_key(p, cache, token, key, partials);

  for (std::int64_t i = thread(); i < p.q.size(1) * pairs; i += kLatentThreads) {
    const std::int64_t head = i / pairs;
    const Pair from(p.rope, token, i % pairs, rotary, p.q.size(2)), to(p.rope, token, i % pairs, rotary, dim);
    const T* q = &element<T>(p.q, token, head * p.q.stride[1]);
    T* out = &element<T>(p.q_out, token, head * p.q_out.stride[1]);
    const float a = to_float(q[from.first]), b = to_float(q[from.second]);
    out[to.first] = from_float<T>(fmaf(a, to.c, -(b * to.s)));
    out[to.second] = from_float<T>(fmaf(b, to.c, a * to.s));
  }
}

}  // namespace

void run_latent_store(Stream& stream, const LatentStoreArgs& args) {
  for_activation(args.q.dtype, [&](auto t) {
    launch(handle_of(stream), row_grid(args.kv.size(0)), kLatentThreads, 0, latent_store_kernel<decltype(t)>,
           args, cache_of(args.cache));
  });
}

void run_qkv_store(Stream& stream, const QkvStoreArgs& args) {
  const int heads = args.q_heads + (args.stores ? 2 * args.cache.spec.kv_heads : 0);
  const dim3 grid(static_cast<unsigned>(args.q_out.size(0)), static_cast<unsigned>(heads));
  for_activation(args.qkv.dtype, [&](auto t) {
    const auto kernel = args.cache.spec.head_dim <= kMaxTiledKey ? qkv_store_kernel<decltype(t), kMaxTiledKey>
                                                                 : qkv_store_kernel<decltype(t), kMaxKey>;
    launch(handle_of(stream), grid, kWarp, 0, kernel, args, cache_of(args.cache));
  });
}

}  // namespace octavo::cuda
