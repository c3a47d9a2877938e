// Writes queries to the output, and keys and values to the KV cache.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/kv_layout.h"
#include "kernels/cpu/kv_rotation.h"
#include "kernels/cpu/normed.h"
#include "kernels/kv_exchange.h"
#include "kernels/kv_quant.h"
#include "kernels/reference/reference.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kElementsAtOnce = 512;

// Writes the elements of a head's key, in the cache's format, to the slot of a token. Keys are written in
// words of one unit.
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

struct CacheWriter {
  const KvLayer& cache;
  const IsaKernels& kernels;
  const KvLayout layout = KvLayout(cache.spec);

  struct SlotAddress {
    std::byte* block;
    std::int64_t group;
    std::int64_t token;
  };
  SlotAddress at(std::int64_t slot) const {
    const std::int64_t in_block = slot % cache.spec.block_size;
    return {cache.data + slot / cache.spec.block_size * cache.stride_bytes, in_block / kGroupTokens,
            in_block % kGroupTokens};
  }

  // Returns the address of the scale of a token's key; the scale of the value is kGroupTokens floats after
  // it.
  float* scales(const SlotAddress& at, std::int64_t head) const {
    return reinterpret_cast<float*>(at.block + layout.scales(head, at.group)) + at.token;
  }

  void put_key(const SlotAddress& at, std::int64_t head, const float* values) const {
    const std::int64_t dim = cache.spec.head_dim;
    if (cache.spec.rotated()) return put_key_codes(at, head, values);
    alignas(64) std::byte cached[kMaxHeadDim * 4];
    const float scale = narrow(values, dim, cached);
    std::byte* keys = at.block + layout.keys(head, at.group);
    with_words(layout.element_bytes * layout.unit, cached,
               [&](const auto* words) { scatter_key(words, dim / layout.unit, at.token, keys); });
    if (cache.spec.scaled()) *scales(at, head) = scale;
  }
  void put_value(const SlotAddress& at, std::int64_t head, const float* values) const {
    const std::int64_t dim = cache.spec.head_dim;
    if (cache.spec.rotated()) return put_value_codes(at, head, values);
    alignas(64) std::byte cached[kMaxHeadDim * 4];
    const float scale = narrow(values, dim, cached);
    std::byte* to = at.block + layout.values(head, at.group);
    with_words(layout.element_bytes, cached,
               [&](const auto* words) { scatter_value(words, dim, layout, at.token, to); });
    if (cache.spec.scaled()) scales(at, head)[kGroupTokens] = scale;
  }

 private:
  // Writes the codes of a vector, after its rotation. Returns the scale.
  float code(const float* values, std::uint8_t* codes) const {
    const std::int64_t dim = cache.spec.head_dim;
    alignas(64) float rotated[kMaxHeadDim];
    std::copy_n(values, dim, rotated);
    rotate_kv(rotated, dim);
    const float scale = kv_scale(std::span<const float>(rotated, static_cast<std::size_t>(dim)));
    for (std::int64_t d = 0; d < dim; ++d) codes[d] = static_cast<std::uint8_t>(kv_code(rotated[d], scale));
    return scale;
  }
  // Keys and values are written in the folded layout (kv_layout.h).
  void put_key_codes(const SlotAddress& at, std::int64_t head, const float* values) const {
    std::uint8_t codes[kMaxHeadDim];
    *scales(at, head) = code(values, codes);
    auto* const to = reinterpret_cast<std::uint16_t*>(at.block + layout.keys(head, at.group)) + at.token;
    for (std::int64_t d = 0; d < cache.spec.head_dim; d += 4)
      to[d / 4 * kGroupTokens] =
          static_cast<std::uint16_t>(codes[d] | codes[d + 2] << 4 | codes[d + 1] << 8 | codes[d + 3] << 12);
  }
  void put_value_codes(const SlotAddress& at, std::int64_t head, const float* values) const {
    std::uint8_t codes[kMaxHeadDim + 8] = {};
    scales(at, head)[kGroupTokens] = code(values, codes);
    std::byte* const to =
        at.block + layout.values(head, at.group) + at.token / 2 * layout.padded_dim + at.token % 2;
    for (std::int64_t d = 0; d < layout.padded_dim; d += 16)
      for (std::int64_t i = 0; i < 8; ++i)
        to[d + 2 * i] = static_cast<std::byte>(codes[d + i] | codes[d + 8 + i] << 4);
  }
  // Converts the elements of a head to the cache's format. Returns the scale, or 1 if the format has no
  // scales.
  float narrow(const float* values, std::int64_t dim, std::byte* cached) const {
    const DType dtype = cache.spec.dtype;
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
  // Passes cached elements to use() as words of `bytes` bytes.
  template <class Use>
  static void with_words(std::int64_t bytes, const std::byte* cached, Use&& use) {
    if (bytes == 4) return use(reinterpret_cast<const std::uint32_t*>(cached));
    if (bytes == 2) return use(reinterpret_cast<const std::uint16_t*>(cached));
    use(reinterpret_cast<const std::uint8_t*>(cached));
  }
};

struct TokenStore {
  const QkvStoreArgs& args;
  const IsaKernels& kernels;
  const CacheWriter writer;
  const std::int64_t dim;
  const Format format;

  const std::byte* input(std::int64_t i, std::int64_t head) const {
    return static_cast<const std::byte*>(args.qkv.data) +
           (i * args.qkv.stride[0] + head * dim) * static_cast<std::int64_t>(size_of(args.qkv.dtype));
  }

  // Normalises and rotates the heads [begin, end) of row i, and passes each head to use(head, values). The
  // row has `count` heads, and `first` is the index of the first one.
  template <class Use>
  void rotated_heads(std::int64_t i, std::int64_t first, std::int64_t count, std::int64_t begin,
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
      row.cos = args.rope.cos.row<float>(i);
      row.sin = args.rope.sin.row<float>(i);
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
      if (args.norm_rotated) row.norm.kind = NormKind::none;
      kernels.head(row);
      if (args.norm_rotated) norm_inplace(norm.kind, row, head_values);
      use(head, head_values);
    }
  }

  // Applies the norm of `row` to `values`, which are already rotated.
  void norm_inplace(NormKind kind, HeadRow row, float* values) const {
    row.norm.kind = kind;
    row.rotary = 0;
    row.x = values;
    row.format = Format::f32;
    row.stats = kernels.norm_stats(values, Format::f32, dim, kind, row.norm.eps);
    kernels.head(row);
  }

  void read_value(const std::byte* x, float* values) const {
    read_normed(kernels, x, format, dim, args.v_norm, values);
  }

  // Processes the heads [begin, end) of token i, in the order queries, keys, values.
  void store(std::int64_t i, std::int64_t begin, std::int64_t end) const {
    const KvSpec& spec = args.cache.spec;
    const CacheWriter::SlotAddress at = writer.at(args.slots.as<std::int64_t>()[i]);
    const std::int64_t keys_first = args.q_heads, values_first = keys_first + spec.kv_heads;

    rotated_heads(i, 0, args.q_heads, begin, std::min(end, keys_first), args.q_norm,
                  [&](std::int64_t head, const float* values) {
                    kernels.narrow(values, nullptr, format,
                                   static_cast<std::byte*>(args.q_out.data) +
                                       (i * args.q_out.stride[0] + head * dim) *
                                           static_cast<std::int64_t>(size_of(args.q_out.dtype)),
                                   dim);
                  });
    rotated_heads(i, keys_first, spec.kv_heads, std::max<std::int64_t>(0, begin - keys_first),
                  std::min(end, values_first) - keys_first, args.k_norm,
                  [&](std::int64_t head, const float* values) { writer.put_key(at, head, values); });
    alignas(64) float wide[kMaxHeadDim];
    for (std::int64_t head = std::max<std::int64_t>(0, begin - values_first); head < end - values_first;
         ++head) {
      read_value(input(i, values_first + head), wide);
      writer.put_value(at, head, wide);
    }
  }
};

// Writes the key head of latent attention, and rotates the ends of the queries.
struct LatentStore {
  const LatentStoreArgs& args;
  const IsaKernels& kernels;
  const CacheWriter writer;
  const std::int64_t latent = args.cache.spec.values_in_keys;
  const std::int64_t rotary = args.rope.rotary_dim;

  void rotate_head(const void* x, Format format, std::int64_t token, float* out) const {
    kernels.head({.x = x,
                  .format = format,
                  .dim = rotary,
                  .norm = {NormKind::none, 0, nullptr, nullptr},
                  .stats = {},
                  .cos = args.rope.cos.row<float>(token),
                  .sin = args.rope.sin.row<float>(token),
                  .rotary = args.rope.rotary_dim,
                  .interleaved = args.rope.interleaved,
                  .out = out});
  }

  void store_key(std::int64_t i) const {
    const float* kv = args.kv.row<float>(i);
    alignas(64) float key[kMaxHeadDim], rotated[kMaxHeadDim];
    read_normed(kernels, kv, Format::f32, latent, args.norm, key);
    rotate_head(kv + latent, Format::f32, i, rotated);
    std::copy_n(rotated, rotary, key + latent);
    if (const std::int64_t index = args.cache.spec.index_dim; index > 0)
      kernels.widen(
          static_cast<const std::byte*>(args.index_keys.data) +
              i * args.index_keys.stride[0] * static_cast<std::int64_t>(size_of(args.index_keys.dtype)),
          format_of(args.index_keys.dtype), key + latent + rotary, index);
    const CacheWriter::SlotAddress at = writer.at(args.slots.as<std::int64_t>()[i]);
    writer.put_key(at, 0, key);
    // Values are parts of keys and have the same scale.
    if (args.cache.spec.dtype == DType::i8) writer.scales(at, 0)[kGroupTokens] = *writer.scales(at, 0);
  }

  // Processes the heads [begin, end) of token i: first the queries, then the key.
  void store(std::int64_t i, std::int64_t begin, std::int64_t end) const {
    const std::int64_t heads = args.q.size(1);
    const Format format = format_of(args.q.dtype);
    const auto element = static_cast<std::int64_t>(size_of(args.q.dtype));
    const auto address = [&](const View& view, std::int64_t head) {
      return static_cast<std::byte*>(view.data) +
             (i * view.stride[0] + head * view.stride[1] + view.size(2) - rotary) * element;
    };
    alignas(64) float rotated[kMaxHeadDim];
    for (std::int64_t head = begin; head < std::min(end, heads); ++head) {
      rotate_head(address(args.q, head), format, i, rotated);
      kernels.narrow(rotated, nullptr, format, address(args.q_out, head), rotary);
    }
    if (end > heads) store_key(i);
  }
};

}  // namespace

std::int64_t kv_block_bytes(const KvSpec& spec) {
  return spec.shared_rows() ? kv_exchange_bytes(spec) : KvLayout(spec).block_bytes;
}

Result<> supports(const KvSpec& spec, int q_heads) {
  if (spec.head_dim < 8 || spec.head_dim % 8 != 0 || spec.head_dim > kMaxHeadDim)
    return field_failure("head_dim", ErrorCode::unsupported, "{} is not a multiple of 8 up to {}",
                         spec.head_dim, kMaxHeadDim);
  if (spec.shared_rows()) return reference::supports(spec, q_heads);
  if (spec.values_in_keys % kHeadRows != 0 || spec.values_in_keys >= spec.head_dim)
    return field_failure("kv_lora_rank", ErrorCode::unsupported, "{} is not a multiple of {}",
                         spec.values_in_keys, kHeadRows);
  if (spec.index_dim % 8 != 0 ||
      (spec.index_dim > 0 && spec.values_in_keys + spec.index_dim >= spec.head_dim))
    return field_failure("index_head_dim", ErrorCode::unsupported, "{} is not a multiple of 8",
                         spec.index_dim);
  if (spec.block_size < kGroupTokens || spec.block_size % kGroupTokens != 0)
    return invalid("block_size", "{} is not a multiple of {}", spec.block_size, kGroupTokens);
  if (spec.kv_heads < 1 || q_heads < 1 || q_heads % spec.kv_heads != 0)
    return invalid("num_key_value_heads", "{} does not divide {} query heads", spec.kv_heads, q_heads);
  return check_kv_format(spec, "CPU");
}

void qkv_store(Stream& stream, const QkvStoreArgs& args) {
  check_indices("slot", args.slots, args.cache.blocks * args.cache.spec.block_size);
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const TokenStore tokens{
      args, kernels, {args.cache, kernels}, args.cache.spec.head_dim, format_of(args.qkv.dtype)};
  const std::int64_t heads = args.q_heads + (args.stores ? 2 * args.cache.spec.kv_heads : 0);
  for_pieces(
      pool_of(stream), args.qkv.size(0), heads, std::max<std::int64_t>(1, kElementsAtOnce / tokens.dim),
      [&](std::int64_t i, std::int64_t head, std::int64_t count) { tokens.store(i, head, head + count); });
}

void latent_store(Stream& stream, const LatentStoreArgs& args) {
  check_indices("slot", args.slots, args.cache.blocks * args.cache.spec.block_size);
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const LatentStore tokens{args, kernels, {args.cache, kernels}};
  for_pieces(
      pool_of(stream), args.kv.size(0), args.q.size(1) + 1,
      std::max<std::int64_t>(1, kElementsAtOnce / args.rope.rotary_dim),
      [&](std::int64_t i, std::int64_t head, std::int64_t count) { tokens.store(i, head, head + count); });
}

}  // namespace octavo::cpu
