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

class Cases {
 public:
  Cases(Backend& backend, const OpShapes& shapes, std::int64_t n, const OpVisitor& visitor)
      : ops_(backend.ops), stream_(*backend.stream), backend_(backend), shapes_(shapes), n_(n), visitor_(visitor) {}

  Result<> attention() {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(n_));
    std::iota(numbers.begin(), numbers.end(), 0);
    TRY(const Buffer position_memory, on_device(backend_, numbers));
    TRY(const Buffer slot_memory, on_device(backend_, std::vector<std::int64_t>(numbers.begin(), numbers.end())));
    TRY(const Buffer frequency_memory, floats(kPairs));
    TRY(const Buffer weight, floats(kDim));
    TRY(const Buffer heads, floats(n_ * shapes_.q_heads * kDim));
    const std::int64_t blocks = (n_ + kBlockSize - 1) / kBlockSize, block_bytes = ops_.kv_block_bytes(kRows);
    TRY(Buffer cache, backend_.device->allocate(static_cast<std::size_t>(blocks * block_bytes)));
    const View positions = position_memory.view(DType::i32, {n_}),
               frequencies = frequency_memory.view(DType::f32, {kPairs});
    const Norm norm{NormKind::rms, 1e-5F, weight.view(DType::f32, {kDim}), {}};
    const View x = heads.view(DType::f32, {n_, kDim});
    measure("rotate_ends", static_cast<double>(n_ * shapes_.q_heads * kPairs) * 6, [&] {
      ops_.rotate_ends(stream_, {.x = heads.view(DType::bf16, {n_, shapes_.q_heads, kDim}),
                                 .positions = positions,
                                 .frequencies = frequencies});
    });
    measure("store_rows", static_cast<double>(n_ * kDim) * 5, [&] {
      ops_.store_rows(stream_, {.x = x,
                                .norm = norm,
                                .positions = positions,
                                .frequencies = frequencies,
                                .slots = slot_memory.view(DType::i64, {n_}),
                                .cache = {static_cast<std::byte*>(cache.data()), blocks, block_bytes, kRows}});
    });
    return compress(positions);
  }

  Result<> streams() {
    constexpr std::int64_t kMixed = kStreams * (2 + kStreams), kAll = kStreams * kStreamDim;
    TRY(const Buffer all, floats(n_ * kAll));
    TRY(const Buffer matrix, floats(kMixed * kAll));
    TRY(const Buffer base, floats(kMixed));
    TRY(const Buffer scale, floats(3));
    TRY(const Buffer out, floats(n_ * kStreamDim));
    TRY(const Buffer post_memory, floats(n_ * kStreams));
    TRY(const Buffer mix_memory, floats(n_ * kStreams * kStreams));
    const View x = all.view(DType::f32, {n_, kStreams, kStreamDim}), post = post_memory.view(DType::f32, {n_, kStreams}),
               mix = mix_memory.view(DType::f32, {n_, kStreams * kStreams});
    measure("collapse_streams", static_cast<double>(n_ * kAll) * 2 * (kMixed + 1), [&] {
      ops_.collapse_streams(stream_, {.x = x,
                                      .matrix = matrix.view(DType::f32, {kMixed, kAll}),
                                      .base = base.view(DType::f32, {kMixed}),
                                      .scale = scale.view(DType::f32, {3}),
                                      .norm_eps = 1e-6F,
                                      .eps = 1e-6F,
                                      .iterations = kIterations,
                                      .out = out.view(DType::f32, {n_, kStreamDim}),
                                      .post = post,
                                      .mix = mix});
    });
    measure("expand_streams", static_cast<double>(n_ * kAll) * 2 * (kStreams + 1), [&] {
      ops_.expand_streams(stream_,
                          {.x = x, .delta = out.view(DType::bf16, {n_, kStreamDim}), .post = post, .mix = mix});
    });
    return {};
  }

 private:
  Result<> compress(const View& positions) {
    TRY(const Buffer values, floats(n_ * kDim));
    TRY(const Buffer bias, floats(kRate * kDim));
    TRY(const Buffer state, floats(3 * kDim));
    TRY(const Buffer means, floats(n_ * kDim));
    TRY(const Buffer slot, on_device(backend_, std::vector<std::int32_t>{0}));
    TRY(const Buffer starts, on_device(backend_, std::vector<std::int32_t>{0, static_cast<std::int32_t>(n_)}));
    const StatePlan plan{
        .slots = slot.view(DType::i32, {1}), .starts = starts.view(DType::i32, {2}), .positions = positions};
    const View x = values.view(DType::f32, {n_, kDim});
    measure("compress", static_cast<double>(n_ * kDim) * 6, [&] {
      ops_.compress(stream_, {.values = x,
                              .gates = x,
                              .bias = bias.view(DType::f32, {kRate, kDim}),
                              .state = state.view(DType::f32, {1, 1, 3, kDim}),
                              .plan = plan,
                              .means = means.view(DType::f32, {n_, kDim})});
    });
    return {};
  }

  Result<Buffer> floats(std::int64_t count) {
    return on_device(backend_, std::vector<float>(static_cast<std::size_t>(count), 0.01F));
  }

  void measure(std::string_view operation, double operations, const std::function<void()>& call) {
    visitor_.measure_calls({.operation = fmt::format("{} {}", operation, shapes_.name),
                            .shape = fmt::format("{} rows", n_),
                            .format = "f32",
                            .calls = kCalls,
                            .bytes = 0,
                            .operations = operations},
                           call);
  }

  const Ops& ops_;
  Stream& stream_;
  Backend& backend_;
  const OpShapes& shapes_;
  const std::int64_t n_;
  const OpVisitor& visitor_;
};

}  // namespace

Result<> compressed_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  if (!backend.ops.supports(kRows, static_cast<int>(shapes.q_heads))) return {};
  for (const std::int64_t n : {1, 16, 512}) {
    Cases cases(backend, shapes, n, visitor);
    TRY_VOID(cases.attention());
    TRY_VOID(cases.streams());
  }
  return {};
}

}  // namespace octavo
