// Cases of `octavo bench ops` for DeepSeek-V4: attention to compressed cache entries, whose keys are also
// the values, and hyper-connections, which mix residual streams.
#include <numeric>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kCalls = 16;  // a single call is too short to time
constexpr int kDim = 512, kRate = 4, kBlockSize = 16, kIterations = 20;
constexpr std::int64_t kPairs = 32, kStreams = 4, kStreamDim = 1024;
constexpr KvSpec kRows{.kv_heads = 1, .head_dim = kDim, .block_size = kBlockSize, .dtype = DType::bf16, .values_in_keys = kDim};

struct Cases : RowCases {
  Result<> attention() {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    TRY(const Buffer position_memory, on_device(backend, numbers));
    TRY(const Buffer slot_memory,
        on_device(backend, std::vector<std::int64_t>(numbers.begin(), numbers.end())));
    TRY(const Buffer frequency_memory, floats(kPairs, 0.01F));
    TRY(const Buffer weight, floats(kDim, 0.01F));
    TRY(const Buffer heads, floats(n * shapes.q_heads * kDim, 0.01F));
    const std::int64_t blocks = (n + kBlockSize - 1) / kBlockSize, block_bytes = ops.kv_block_bytes(kRows);
    TRY(Buffer cache, backend.device->allocate(static_cast<std::size_t>(blocks * block_bytes)));
    const View positions = position_memory.view(DType::i32, {n}),
               frequencies = frequency_memory.view(DType::f32, {kPairs});
    const Norm norm{NormKind::rms, 1e-5F, weight.view(DType::f32, {kDim}), {}};
    const View x = heads.view(DType::f32, {n, kDim});
    measure("rotate_ends", kCalls, static_cast<double>(n * shapes.q_heads * kPairs) * 6, [&] {
      ops.rotate_ends(stream, {.x = heads.view(DType::bf16, {n, shapes.q_heads, kDim}),
                               .positions = positions,
                               .frequencies = frequencies});
    });
    measure("store_rows", kCalls, static_cast<double>(n * kDim) * 5, [&] {
      ops.store_rows(stream, {.x = x,
                              .norm = norm,
                              .positions = positions,
                              .frequencies = frequencies,
                              .slots = slot_memory.view(DType::i64, {n}),
                              .cache = {static_cast<std::byte*>(cache.data()), blocks, block_bytes, kRows}});
    });
    return compress(positions);
  }

  Result<> streams() {
    constexpr std::int64_t kMixed = kStreams * (2 + kStreams), kAll = kStreams * kStreamDim;
    TRY(const Buffer all, floats(n * kAll, 0.01F));
    TRY(const Buffer matrix, floats(kMixed * kAll, 0.01F));
    TRY(const Buffer base, floats(kMixed, 0.01F));
    TRY(const Buffer scale, floats(3, 0.01F));
    TRY(const Buffer out, floats(n * kStreamDim, 0.01F));
    TRY(const Buffer post_memory, floats(n * kStreams, 0.01F));
    TRY(const Buffer mix_memory, floats(n * kStreams * kStreams, 0.01F));
    const View x = all.view(DType::f32, {n, kStreams, kStreamDim}),
               post = post_memory.view(DType::f32, {n, kStreams}),
               mix = mix_memory.view(DType::f32, {n, kStreams * kStreams});
    measure("collapse_streams", kCalls, static_cast<double>(n * kAll) * 2 * (kMixed + 1), [&] {
      ops.collapse_streams(stream, {.x = x,
                                    .matrix = matrix.view(DType::f32, {kMixed, kAll}),
                                    .base = base.view(DType::f32, {kMixed}),
                                    .scale = scale.view(DType::f32, {3}),
                                    .norm_eps = 1e-6F,
                                    .eps = 1e-6F,
                                    .iterations = kIterations,
                                    .out = out.view(DType::f32, {n, kStreamDim}),
                                    .post = post,
                                    .mix = mix});
    });
    measure("expand_streams", kCalls, static_cast<double>(n * kAll) * 2 * (kStreams + 1), [&] {
      ops.expand_streams(stream,
                         {.x = x, .delta = out.view(DType::bf16, {n, kStreamDim}), .post = post, .mix = mix});
    });
    return {};
  }

 private:
  Result<> compress(const View& positions) {
    TRY(const Buffer values, floats(n * kDim, 0.01F));
    TRY(const Buffer bias, floats(kRate * kDim, 0.01F));
    TRY(const Buffer state, floats(3 * kDim, 0.01F));
    TRY(const Buffer means, floats(n * kDim, 0.01F));
    TRY(const Buffer slot, on_device(backend, std::vector<std::int32_t>{0}));
    TRY(const Buffer starts, on_device(backend, std::vector<std::int32_t>{0, static_cast<std::int32_t>(n)}));
    const StatePlan plan{
        .slots = slot.view(DType::i32, {1}), .starts = starts.view(DType::i32, {2}), .positions = positions};
    const View x = values.view(DType::f32, {n, kDim});
    measure("compress", kCalls, static_cast<double>(n * kDim) * 6, [&] {
      ops.compress(stream, {.values = x,
                            .gates = x,
                            .bias = bias.view(DType::f32, {kRate, kDim}),
                            .state = state.view(DType::f32, {1, 1, 3, kDim}),
                            .plan = plan,
                            .means = means.view(DType::f32, {n, kDim})});
    });
    return {};
  }
};

}  // namespace

Result<> compressed_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  if (!backend.ops.supports(kRows, static_cast<int>(shapes.q_heads))) return {};
  for (const std::int64_t n : {1, 16, 512}) {
    Cases cases{{backend, shapes, n, visitor}};
    TRY_VOID(cases.attention());
    TRY_VOID(cases.streams());
  }
  return {};
}

}  // namespace octavo
