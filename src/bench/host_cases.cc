// Cases of `octavo bench ops` for operators of the backends in host memory: mixes of rows, rows of token
// sequences, and the indexer of attention to blocks of tokens.
#include <numeric>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kCalls = 16;  // a single call is too short to time
constexpr std::int64_t kSources = 8;
constexpr std::int64_t kIndexHeads = 4, kIndexDim = 128, kChosenBlocks = 16;  // values of MiniMax-M3
constexpr int kTokensOfBlock = 128, kCacheBlock = 16, kContext = 4096;
constexpr GramTable kTables[] = {{2, 65537}, {3, 65539}, {4, 65543}};

class HostCases {
 public:
  HostCases(Backend& backend, const OpShapes& shapes, std::int64_t n, const OpVisitor& visitor)
      : ops_(backend.ops),
        stream_(*backend.stream),
        backend_(backend),
        shapes_(shapes),
        n_(n),
        visitor_(visitor) {}

  Result<> mixes() {
    const std::int64_t dim = shapes_.dim, heads = shapes_.q_heads, width = heads * shapes_.head_dim;
    TRY(const Buffer sources, floats(n_ * kSources * dim));
    TRY(const Buffer query, floats(dim));
    TRY(const Buffer mixed, floats(n_ * dim));
    measure("mix_sources", kCalls, static_cast<double>(n_ * kSources * dim) * 6, [&] {
      ops_.mix_sources(stream_, {.x = sources.view(DType::f32, {n_, kSources, dim}),
                                 .query = query.view(DType::f32, {dim}),
                                 .eps = 1e-6F,
                                 .out = mixed.view(DType::f32, {n_, dim})});
    });
    TRY(const Buffer weight, floats(width));
    TRY(const Buffer bias, floats(heads));
    TRY(const Buffer rows, floats(n_ * width));
    const View outputs = rows.view(DType::bf16, {n_, width});
    measure("mix_heads", kCalls, static_cast<double>(n_ * width) * 5, [&] {
      ops_.mix_heads(stream_, {.q = rows.view(DType::bf16, {n_, heads, shapes_.head_dim}),
                               .weight = weight.view(DType::f32, {heads, shapes_.head_dim}),
                               .bias = bias.view(DType::f32, {heads}),
                               .first = outputs,
                               .second = outputs,
                               .y = outputs});
    });
    return {};
  }

  Result<> grams() {
    constexpr std::int64_t kTableCount = std::size(kTables), kBefore = 3;
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n_));
    std::iota(positions.begin(), positions.end(), 0);
    TRY(const Buffer position_memory, on_device(backend_, positions));
    TRY(const Buffer ids, floats(n_));
    TRY(const Buffer rows, floats(kTableCount * n_));
    TRY(const Buffer state, floats(kBefore));
    TRY(const Buffer slot, on_device(backend_, std::vector<std::int32_t>{0}));
    TRY(const Buffer starts,
        on_device(backend_, std::vector<std::int32_t>{0, static_cast<std::int32_t>(n_)}));
    measure("gram_rows", kCalls, static_cast<double>(n_ * kTableCount * kBefore) * 3, [&] {
      ops_.gram_rows(stream_, {.ids = ids.view(DType::i32, {n_}),
                               .vocab = shapes_.vocab,
                               .tables = kTables,
                               .state = state.view(DType::f32, {1, 1, kBefore}),
                               .plan = {.slots = slot.view(DType::i32, {1}),
                                        .starts = starts.view(DType::i32, {2}),
                                        .positions = position_memory.view(DType::i32, {n_})},
                               .rows = rows.view(DType::i32, {kTableCount, n_})});
    });
    return {};
  }

  Result<> blocks() {
    const KvSpec spec{.kv_heads = 1, .head_dim = kIndexDim, .block_size = kCacheBlock, .dtype = DType::bf16};
    const std::int64_t block_bytes = ops_.kv_block_bytes(spec);
    constexpr int kCacheBlocks = kContext / kCacheBlock;
    TRY(const Buffer memory,
        on_device(backend_, std::vector<std::uint8_t>(static_cast<std::size_t>(kCacheBlocks * block_bytes))));
    TRY(const Buffer q, floats(n_ * kIndexHeads * kIndexDim));
    TRY(const Buffer chosen, floats(n_ * kIndexHeads * kChosenBlocks));
    TRY(const auto plan, ops_.make_attention_plan(*backend_.device, {.max_tokens = static_cast<int>(n_),
                                                                     .max_sequences = 1,
                                                                     .max_length = kContext,
                                                                     .q_heads = static_cast<int>(kIndexHeads),
                                                                     .kv = spec}));
    const std::vector<std::int32_t> starts{0, static_cast<std::int32_t>(n_)}, lengths{kContext};
    std::vector<std::int32_t> table(kCacheBlocks);
    std::iota(table.begin(), table.end(), 0);
    ops_.plan_attention(stream_, {starts, lengths, table, kCacheBlocks}, *plan);
    measure("choose_blocks", 1, static_cast<double>(n_ * kIndexHeads * kContext * kIndexDim) * 2, [&] {
      ops_.choose_blocks(stream_,
                         {.q = q.view(DType::bf16, {n_, kIndexHeads, kIndexDim}),
                          .cache = {static_cast<std::byte*>(memory.data()), kCacheBlocks, block_bytes, spec},
                          .plan = *plan,
                          .block = kTokensOfBlock,
                          .chosen = chosen.view(DType::i32, {n_, kIndexHeads, kChosenBlocks})});
    });
    return {};
  }

 private:
  Result<Buffer> floats(std::int64_t count) {
    return on_device(backend_, std::vector<float>(static_cast<std::size_t>(count)));
  }

  void measure(std::string_view operation, int calls, double operations, const std::function<void()>& call) {
    visitor_.measure_calls({.operation = fmt::format("{} {}", operation, shapes_.name),
                            .shape = fmt::format("{} rows", n_),
                            .format = "f32",
                            .calls = calls,
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

Result<> host_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  if (!backend.device->shares_host_memory()) return {};
  for (const std::int64_t n : {1, 16, 512}) {
    HostCases cases(backend, shapes, n, visitor);
    TRY_VOID(cases.mixes());
    TRY_VOID(cases.grams());
    TRY_VOID(cases.blocks());
  }
  return {};
}

}  // namespace octavo
