// Queries out, keys and values into the cache.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/kv_layout.h"
#include "kernels/kv_quant.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kElementsAtOnce = 512;  // of heads of a token

// A head's numbers in the cache's format, to where a token's keys or values lie: keys as words of a unit
// each.
template <class T>
void scatter_key(const T* from, std::int64_t units, std::int64_t token, std::byte* group) {
  T* to = reinterpret_cast<T*>(group) + token;
  for (std::int64_t i = 0; i < units; ++i) to[i * kGroupTokens] = from[i];
}

template <class T>
void scatter_value(const T* from, std::int64_t dim, const KvLayout& layout, std::int64_t token,
                   std::byte* group) {
  T* to = reinterpret_cast<T*>(group) + token / layout.unit * layout.padded_dim * layout.unit +
          token % layout.unit;
  for (std::int64_t d = 0; d < dim; ++d) to[d * layout.unit] = from[d];
}

struct TokenStore {
  const QkvStoreArgs& args;
  const IsaKernels& kernels;
  const KvLayout layout;
  const std::int64_t dim;
  const Format format;

  const std::byte* input(std::int64_t i, std::int64_t head) const {
    return static_cast<const std::byte*>(args.qkv.data) +
           (i * args.qkv.stride[0] + head * dim) * static_cast<std::int64_t>(size_of(args.qkv.dtype));
  }

  // Heads [begin, end) of the `count` that lie in row i from `first` on, normalised and turned, each given to
  // use(head, values).
  template <class Use>
  void turned_heads(std::int64_t i, std::int64_t first, std::int64_t count, std::int64_t begin,
                    std::int64_t end, const Norm& norm, Use&& use) const {
    if (begin >= end) return;
    HeadRow row{.x = nullptr,
                .format = format,
                .dim = dim,
                .norm = {norm.kind, norm.eps, nullptr, nullptr},
                .stats = {},
                .cos = nullptr,
                .sin = nullptr,
                .rotary = args.rope.rotary_dim,
                .interleaved = args.rope.interleaved,
                .out = nullptr};
    alignas(64) float head_values[kMaxHeadDim];
    row.out = head_values;
    if (row.rotary > 0) {
      const std::int32_t position = args.positions.as<std::int32_t>()[i];
      row.cos = args.rope.cos.row<float>(position);
      row.sin = args.rope.sin.row<float>(position);
    }
    const bool normed = norm.kind != NormKind::none;
    if (normed && args.norm_whole_row)
      row.stats = kernels.norm_stats(input(i, first), format, count * dim, norm.kind, norm.eps);
    for (std::int64_t head = begin; head < end; ++head) {
      row.x = input(i, first + head);
      if (normed) {
        const bool own_weight = args.norm_whole_row || norm.weight.rank == 2;
        row.norm.weight = norm.weight.as<float>() + (own_weight ? head * dim : 0);
        if (norm.bias) row.norm.bias = norm.bias.as<float>() + (own_weight ? head * dim : 0);
        if (!args.norm_whole_row) row.stats = kernels.norm_stats(row.x, format, dim, norm.kind, norm.eps);
      }
      kernels.head(row);
      use(head, head_values);
    }
  }

  // A head's numbers in the cache's format; returns the scale, where it has one.
  float narrow(const float* values, std::byte* cached) const {
    const DType dtype = args.cache.spec.dtype;
    float scale = 1;
    if (dtype == DType::f8_e4m3) {
      for (std::int64_t d = 0; d < dim; ++d) cached[d] = std::byte{to_f8_e4m3(values[d]).bits};
    } else if (dtype == DType::i8) {
      scale = kv_scale(std::span(values, static_cast<std::size_t>(dim)));
      for (std::int64_t d = 0; d < dim; ++d)
        cached[d] = static_cast<std::byte>(kv_quantized(values[d], scale));
    } else {
      kernels.narrow(values, nullptr, format_of(dtype), cached, dim);
    }
    return scale;
  }
  // Gives cached numbers to use() as words of so many bytes.
  template <class Use>
  static void with_words(std::int64_t bytes, const std::byte* cached, Use&& use) {
    if (bytes == 4) return use(reinterpret_cast<const std::uint32_t*>(cached));
    if (bytes == 2) return use(reinterpret_cast<const std::uint16_t*>(cached));
    use(reinterpret_cast<const std::uint8_t*>(cached));
  }
  float* scales_of(std::byte* block, std::int64_t head, std::int64_t group) const {
    return reinterpret_cast<float*>(block + layout.scales(head, group));
  }

  // Heads [begin, end) of token i, those of queries first, those of keys, those of values.
  void store(std::int64_t i, std::int64_t begin, std::int64_t end) const {
    const KvSpec& spec = args.cache.spec;
    const std::int64_t slot = args.slots.as<std::int64_t>()[i];
    const std::int64_t in_block = slot % spec.block_size;
    const std::int64_t group = in_block / kGroupTokens;
    const std::int64_t token = in_block % kGroupTokens;
    std::byte* block = args.cache.data + slot / spec.block_size * args.cache.stride_bytes;
    alignas(64) std::byte cached[kMaxHeadDim * 4];
    const std::int64_t keys_first = args.q_heads, values_first = keys_first + spec.kv_heads;

    turned_heads(i, 0, args.q_heads, begin, std::min(end, keys_first), args.q_norm,
                 [&](std::int64_t head, const float* values) {
                   kernels.narrow(values, nullptr, format,
                                  static_cast<std::byte*>(args.q_out.data) +
                                      (i * args.q_out.stride[0] + head * dim) *
                                          static_cast<std::int64_t>(size_of(args.q_out.dtype)),
                                  dim);
                 });
    turned_heads(i, keys_first, spec.kv_heads, std::max<std::int64_t>(0, begin - keys_first),
                 std::min(end, values_first) - keys_first, args.k_norm,
                 [&](std::int64_t head, const float* values) {
                   const float scale = narrow(values, cached);
                   std::byte* keys = block + layout.keys(head, group);
                   with_words(layout.element_bytes * layout.unit, cached,
                              [&](const auto* words) { scatter_key(words, dim / layout.unit, token, keys); });
                   if (spec.dtype == DType::i8) scales_of(block, head, group)[token] = scale;
                 });
    alignas(64) float wide[kMaxHeadDim];
    for (std::int64_t head = std::max<std::int64_t>(0, begin - values_first); head < end - values_first;
         ++head) {
      kernels.widen(input(i, values_first + head), format, wide, dim);
      const float scale = narrow(wide, cached);
      std::byte* values = block + layout.values(head, group);
      with_words(layout.element_bytes, cached,
                 [&](const auto* words) { scatter_value(words, dim, layout, token, values); });
      if (spec.dtype == DType::i8) scales_of(block, head, group)[kGroupTokens + token] = scale;
    }
  }
};

}  // namespace

std::int64_t kv_block_bytes(const KvSpec& spec) { return KvLayout(spec).block_bytes; }

Result<> supports(const KvSpec& spec, int q_heads) {
  if (spec.head_dim < 8 || spec.head_dim % 8 != 0 || spec.head_dim > kMaxHeadDim)
    return field_failure("head_dim", ErrorCode::unsupported, "{} is not a multiple of 8 up to {}",
                         spec.head_dim, kMaxHeadDim);
  if (spec.block_size < kGroupTokens || spec.block_size % kGroupTokens != 0)
    return invalid("block_size", "{} is not a multiple of {}", spec.block_size, kGroupTokens);
  if (spec.kv_heads < 1 || q_heads < 1 || q_heads % spec.kv_heads != 0)
    return invalid("num_key_value_heads", "{} does not divide {} query heads", spec.kv_heads, q_heads);
  if (spec.dtype != DType::f32 && spec.dtype != DType::bf16 && spec.dtype != DType::f16 &&
      spec.dtype != DType::f8_e4m3 && spec.dtype != DType::i8)
    return field_failure("kv_cache_dtype", ErrorCode::unsupported, "no KV cache in {}", name(spec.dtype));
  return {};
}

void qkv_store(Stream& stream, const QkvStoreArgs& args) {
  check_indices("slot", args.slots, args.cache.blocks * args.cache.spec.block_size);
  if (args.rope.rotary_dim > 0) check_indices("position", args.positions, args.rope.cos.size(0));
  const TokenStore tokens{args, cpu_stream(stream).kernels(), KvLayout(args.cache.spec),
                          args.cache.spec.head_dim, format_of(args.qkv.dtype)};
  const std::int64_t heads = args.q_heads + 2 * args.cache.spec.kv_heads;
  for_pieces(
      pool_of(stream), args.qkv.size(0), heads, std::max<std::int64_t>(1, kElementsAtOnce / tokens.dim),
      [&](std::int64_t i, std::int64_t head, std::int64_t count) { tokens.store(i, head, head + count); });
}

}  // namespace octavo::cpu
