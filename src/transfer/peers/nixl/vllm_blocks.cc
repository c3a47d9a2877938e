#include "transfer/peers/nixl/vllm_blocks.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

constexpr std::int64_t kBlockTokensMax = 4096;

// Dimensions of a block of one layer. elements: head_dim. bytes: bytes of one number.
struct VllmSizes {
  std::size_t heads, tokens, elements, bytes;
};

// Order of the numbers in a block. Makes the plane of the keys (part 0) or of the values (part 1).
struct VllmOrder {
  VllmPlane (*plane)(const VllmSizes&, std::size_t part);
  std::size_t (*head_stride)(const VllmSizes&);
};

VllmPlane plane_of(const VllmSizes& s, std::size_t first, auto&& token, auto&& element) {
  VllmPlane plane{.first = first * s.bytes};
  for (std::size_t t = 0; t < s.tokens; ++t) plane.tokens.push_back(token(t) * s.bytes);
  for (std::size_t e = 0; e < s.elements; ++e) plane.elements.push_back(element(e) * s.bytes);
  return plane;
}

std::size_t itself(std::size_t index) { return index; }

std::size_t contiguous_heads(const VllmSizes& s) { return 2 * s.tokens * s.elements * s.bytes; }

// [tokens][heads][keys, values][head_dim]
constexpr VllmOrder kTokenMajor{[](const VllmSizes& s, std::size_t part) {
                                  return plane_of(
                                      s, part * s.elements,
                                      [&](std::size_t t) { return t * 2 * s.heads * s.elements; }, itself);
                                },
                                [](const VllmSizes& s) { return 2 * s.elements * s.bytes; }};

// [heads][tokens][keys, values][head_dim]
constexpr VllmOrder kHeadMajor{
    [](const VllmSizes& s, std::size_t part) {
      return plane_of(s, part * s.elements, [&](std::size_t t) { return t * 2 * s.elements; }, itself);
    },
    contiguous_heads};

// [heads] of keys [head_dim][tokens], values [tokens][head_dim]
constexpr VllmOrder kCpuVectors{
    [](const VllmSizes& s, std::size_t part) {
      if (part == 0) return plane_of(s, 0, itself, [&](std::size_t e) { return e * s.tokens; });
      return plane_of(s, s.tokens * s.elements, [&](std::size_t t) { return t * s.elements; }, itself);
    },
    contiguous_heads};

// [heads] of keys [tokens / 16][head_dim / 2][16][2], values [head_dim / 16][tokens / 2][16][2]
constexpr VllmOrder kCpuTiles{
    [](const VllmSizes& s, std::size_t part) {
      const auto pairs = [](std::size_t i) { return i / 2 * 32 + i % 2; };
      const auto tiles = [](std::size_t i, std::size_t width) { return i / 16 * 16 * width + i % 16 * 2; };
      if (part == 0) return plane_of(s, 0, [&](std::size_t t) { return tiles(t, s.elements); }, pairs);
      return plane_of(s, s.tokens * s.elements, pairs, [&](std::size_t e) { return tiles(e, s.tokens); });
    },
    contiguous_heads};

// Returns the order of vLLM's CPU backend. vLLM does not report its instruction set, so both machines must
// have the same one, as with vLLM on both sides. Returns null if the order of this instruction set is
// unknown.
const VllmOrder* cpu_order([[maybe_unused]] const VllmSizes& s, [[maybe_unused]] std::string_view dtype,
                           [[maybe_unused]] bool amx) {
#if defined(__x86_64__)
  return amx && dtype == "bf16" && s.tokens % 32 == 0 && s.elements % 32 == 0 ? &kCpuTiles : &kCpuVectors;
#else
  return nullptr;
#endif
}

// An attention backend of vLLM 0.32, and a KV cache layout. order: null: see cpu_order().
struct VllmLayout {
  std::string_view backend, layout;
  const VllmOrder* order;
};
constexpr VllmLayout kVllmLayouts[] = {
    {"CPU_ATTN", "LBHNC", nullptr},        {"FLASH_ATTN", "LBNHC", &kTokenMajor},
    {"FLASH_ATTN", "LBHNC", &kHeadMajor},  {"TRITON_ATTN", "LBNHC", &kTokenMajor},
    {"TRITON_ATTN", "LBHNC", &kHeadMajor},
};

std::size_t bytes_of_number(std::string_view dtype) {
  if (dtype == "f32") return 4;
  return dtype == "bf16" || dtype == "f16" ? 2 : 0;
}

Result<const VllmOrder*> order_of(const VllmSizes& sizes, std::string_view dtype, const VllmAgent& agent,
                                  bool amx) {
  const auto row = std::ranges::find_if(kVllmLayouts, [&](const VllmLayout& each) {
    return each.backend == agent.backend && each.layout == agent.layout;
  });
  const VllmOrder* order = nullptr;
  if (row != std::end(kVllmLayouts)) order = row->order ? row->order : cpu_order(sizes, dtype, amx);
  if (order != nullptr) return order;
  return invalid("",
                 "attn_backend_name and kv_cache_layout are {} and {} at the other engine, whose blocks this "
                 "engine cannot convert",
                 quoted_text(agent.backend), quoted_text(agent.layout));
}

Result<> check_regions(const VllmAgent& agent, std::size_t layers, std::size_t layer_bytes) {
  if (agent.regions.size() != layers)
    return invalid("", "the KV caches have {} regions at the other engine and {} layers here",
                   agent.regions.size(), layers);
  for (const VllmRegion& region : agent.regions) {
    if (static_cast<std::size_t>(region.block_bytes) != layer_bytes)
      return invalid("",
                     "block_lens is {} at the other engine and {} here: dtype, heads or tensor_parallel_size "
                     "differ",
                     region.block_bytes, layer_bytes);
    if (region.stride < region.block_bytes)
      return invalid("", "block_strides is {} at the other engine, less than block_lens {}", region.stride,
                     region.block_bytes);
  }
  return {};
}

}  // namespace

bool this_machine_has_amx() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("amx-tile") != 0;
#else
  return false;
#endif
}

Result<> VllmBlocks::check(const BlockFormat& format) {
  const auto& planes = format.planes;
  if (!planes.empty() && bytes_of_number(format.dtype) > 0 && planes.front().count % 2 == 0 &&
      std::ranges::all_of(planes, [&](const auto& each) { return each == planes.front(); }))
    return {};
  return field_failure("", ErrorCode::unsupported,
                       "transport nixl needs a model with full attention and equal layers, and a KV cache of "
                       "float32, float16 or bfloat16, got {}",
                       format.dtype);
}

Result<VllmBlocks> VllmBlocks::of(const BlockFormat& format, const VllmAgent& agent, bool amx) {
  TRY_VOID(check(format));
  if (agent.block_size > kBlockTokensMax || agent.blocks_of_an_id > kBlockTokensMax)
    return invalid("", "block_size is {} at the other engine, at most {} is supported", agent.block_size,
                   kBlockTokensMax);
  if (agent.context_ranks != 1)
    return invalid("", "dcp_size * pcp_size is {} at the other engine, must be 1", agent.context_ranks);
  VllmBlocks out;
  out.layers_ = format.planes.size();
  out.heads_ = static_cast<std::size_t>(format.planes.front().count) / 2;
  out.tokens_ = static_cast<std::size_t>(agent.block_size);
  out.vector_bytes_ = static_cast<std::size_t>(format.planes.front().token_bytes);
  out.element_bytes_ = bytes_of_number(format.dtype);
  out.piece_tokens_ = static_cast<std::size_t>(format.block_size);
  TRY_VOID(check_regions(agent, out.layers_, out.layer_bytes()));
  const VllmSizes sizes{out.heads_, out.tokens_, out.vector_bytes_ / out.element_bytes_, out.element_bytes_};
  TRY(const VllmOrder* order, order_of(sizes, format.dtype, agent, amx));
  out.head_stride_ = order->head_stride(sizes);
  for (const std::size_t part : {0, 1}) out.planes_[part] = order->plane(sizes, part);
  return out;
}

void VllmBlocks::copy_vector(const VllmPlane& plane, const std::byte* from, std::byte* to) const {
  if (plane.elements.back() == vector_bytes_ - element_bytes_) {
    std::memcpy(to, from, vector_bytes_);
    return;
  }
  for (const std::size_t element : plane.elements) {
    std::memcpy(to, from + element, element_bytes_);
    to += element_bytes_;
  }
}

void VllmBlocks::copy(std::span<const std::byte> block, std::size_t from, std::size_t count,
                      std::span<std::byte> piece, std::size_t to) const {
  CHECK(block.size() == bytes() && from + count <= tokens_ && to + count <= piece_tokens_);
  CHECK(piece.size() == 2 * layers_ * heads_ * piece_tokens_ * vector_bytes_);
  std::byte* out = piece.data() + to * vector_bytes_;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    for (const VllmPlane& plane : planes_) {
      for (std::size_t head = 0; head < heads_; ++head, out += piece_tokens_ * vector_bytes_) {
        const std::byte* const in = &block[layer * layer_bytes() + plane.first + head * head_stride_];
        for (std::size_t i = 0; i < count; ++i)
          copy_vector(plane, in + plane.tokens[from + i], out + i * vector_bytes_);
      }
    }
  }
}

}  // namespace octavo
