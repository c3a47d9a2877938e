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

struct HostCases : RowCases {
  Result<> mixes() {
    const std::int64_t dim = shapes.dim, heads = shapes.q_heads, width = heads * shapes.head_dim;
    TRY(const Buffer sources, floats(n * kSources * dim));
    TRY(const Buffer query, floats(dim));
    TRY(const Buffer mixed, floats(n * dim));
    measure("mix_sources", kCalls, static_cast<double>(n * kSources * dim) * 6, [&] {
      ops.mix_sources(stream, {.x = sources.view(DType::f32, {n, kSources, dim}),
                               .query = query.view(DType::f32, {dim}),
                               .eps = 1e-6F,
                               .out = mixed.view(DType::f32, {n, dim})});
    });
    TRY(const Buffer weight, floats(width));
    TRY(const Buffer bias, floats(heads));
    TRY(const Buffer rows, floats(n * width));
    const View outputs = rows.view(DType::bf16, {n, width});
    measure("mix_heads", kCalls, static_cast<double>(n * width) * 5, [&] {
      ops.mix_heads(stream, {.q = rows.view(DType::bf16, {n, heads, shapes.head_dim}),
                             .weight = weight.view(DType::f32, {heads, shapes.head_dim}),
                             .bias = bias.view(DType::f32, {heads}),
                             .first = outputs,
                             .second = outputs,
                             .y = outputs});
    });
    return {};
  }

  Result<> grams() {
    constexpr std::int64_t kTableCount = std::size(kTables), kBefore = 3;
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
    std::iota(positions.begin(), positions.end(), 0);
    TRY(const Buffer position_memory, on_device(backend, positions));
    TRY(const Buffer ids, floats(n));
    TRY(const Buffer rows, floats(kTableCount * n));
    TRY(const Buffer state, floats(kBefore));
    TRY(const Buffer slot, on_device(backend, std::vector<std::int32_t>{0}));
    TRY(const Buffer starts, on_device(backend, std::vector<std::int32_t>{0, static_cast<std::int32_t>(n)}));
    measure("gram_rows", kCalls, static_cast<double>(n * kTableCount * kBefore) * 3, [&] {
      ops.gram_rows(stream, {.ids = ids.view(DType::i32, {n}),
                             .vocab = shapes.vocab,
                             .tables = kTables,
                             .state = state.view(DType::f32, {1, 1, kBefore}),
                             .plan = {.slots = slot.view(DType::i32, {1}),
                                      .starts = starts.view(DType::i32, {2}),
                                      .positions = position_memory.view(DType::i32, {n})},
                             .rows = rows.view(DType::i32, {kTableCount, n})});
    });
    return {};
  }

  Result<> blocks() {
    const KvSpec spec{.kv_heads = 1, .head_dim = kIndexDim, .block_size = kCacheBlock, .dtype = DType::bf16};
    const std::int64_t block_bytes = ops.kv_block_bytes(spec);
    constexpr int kCacheBlocks = kContext / kCacheBlock;
    TRY(const Buffer memory,
        on_device(backend, std::vector<std::uint8_t>(static_cast<std::size_t>(kCacheBlocks * block_bytes))));
    TRY(const Buffer q, floats(n * kIndexHeads * kIndexDim));
    TRY(const Buffer chosen, floats(n * kIndexHeads * kChosenBlocks));
    TRY(const auto plan, ops.make_attention_plan(*backend.device, {.max_tokens = static_cast<int>(n),
                                                                   .max_sequences = 1,
                                                                   .max_length = kContext,
                                                                   .q_heads = static_cast<int>(kIndexHeads),
                                                                   .kv = spec}));
    const std::vector<std::int32_t> starts{0, static_cast<std::int32_t>(n)}, lengths{kContext};
    std::vector<std::int32_t> table(kCacheBlocks);
    std::iota(table.begin(), table.end(), 0);
    ops.plan_attention(stream, {starts, lengths, table, kCacheBlocks}, *plan);
    measure("choose_blocks", 1, static_cast<double>(n * kIndexHeads * kContext * kIndexDim) * 2, [&] {
      ops.choose_blocks(stream,
                        {.q = q.view(DType::bf16, {n, kIndexHeads, kIndexDim}),
                         .cache = {static_cast<std::byte*>(memory.data()), kCacheBlocks, block_bytes, spec},
                         .plan = *plan,
                         .block = kTokensOfBlock,
                         .chosen = chosen.view(DType::i32, {n, kIndexHeads, kChosenBlocks})});
    });
    return {};
  }
};

}  // namespace

Result<> host_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  if (!backend.device->shares_host_memory()) return {};
  for (const std::int64_t n : {1, 16, 512}) {
    HostCases cases{{backend, shapes, n, visitor}};
    TRY_VOID(cases.mixes());
    TRY_VOID(cases.grams());
    TRY_VOID(cases.blocks());
  }
  return {};
}

}  // namespace octavo
