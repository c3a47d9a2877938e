// The indexer of attention to blocks of tokens. Each thread processes one query at a time.
#include <algorithm>
#include <numeric>

#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/scratch_pieces.h"

namespace octavo::cpu {
namespace {

struct BlockChoice : ScratchPieces {
  BlockChoice(const KvSpec& spec, std::int64_t blocks, std::byte* memory) : ScratchPieces(memory) {
    q = take<float>(spec.head_dim);
    keys = take<float>(kGroupTokens * spec.head_dim);
    wide = take<std::byte>(kGroupTokens * spec.head_dim * 2);
    if (spec.dtype == DType::i4) unfolded = take<std::byte>(kGroupTokens * spec.head_dim);
    scores = take<float>(blocks);
    order = take<std::int32_t>(blocks);
  }

  float* q;
  float* keys;      // a group of keys, in the layout of KvLayout
  std::byte* wide;  // the same in bf16, for caches of 8-bit and 4-bit numbers
  std::byte* unfolded = nullptr;  // the same as signed bytes, for caches of 4-bit numbers
  float* scores;
  std::int32_t* order;
};

class BlockChooser {
 public:
  BlockChooser(const ChooseBlocksArgs& args, const IsaKernels& kernels)
      : args_(args),
        kernels_(kernels),
        plan_(static_cast<const CpuAttentionPlan&>(args.plan)),
        layout_(args.cache.spec) {}

  void choose(std::int64_t query, std::int64_t head, BlockChoice& memory) const {
    const std::int32_t sequence = plan_.sequence_of(query);
    const std::int64_t row = (query - plan_.first_query(sequence)) * plan_.group();
    const std::int64_t tokens = plan_.position(sequence, row) + 1, most = args_.chosen.size(2);
    const std::int64_t blocks = (tokens + args_.block - 1) / args_.block;
    auto* const chosen = args_.chosen.row<std::int32_t>(query) + head * args_.chosen.stride[1];
    if (blocks <= most) {
      std::iota(chosen, chosen + blocks, 0);
      std::fill(chosen + blocks, chosen + most, kNoToken);
      return;
    }
    const auto element = static_cast<std::int64_t>(size_of(args_.q.dtype));
    kernels_.widen(static_cast<const std::byte*>(args_.q.data) +
                       (query * args_.q.stride[0] + head * args_.q.stride[1]) * element,
                   format_of(args_.q.dtype), memory.q, spec().head_dim);
    if (spec().rotated()) rotate_kv(memory.q, spec().head_dim);
    std::fill_n(memory.scores, blocks, kNoScore);
    for (std::int64_t group = 0; group * kGroupTokens < tokens; ++group)
      score(sequence, group, tokens, memory);
    std::fill_n(memory.scores + blocks - args_.local, args_.local, std::numeric_limits<float>::infinity());
    keep_best(memory.scores, blocks, memory.order, most, chosen);
  }

 private:
  const KvSpec& spec() const { return args_.cache.spec; }

  const std::byte* block_of(std::int32_t sequence, std::int64_t group) const {
    const std::int32_t block = plan_.block(sequence, group / layout_.groups);
    CHECK(block >= 0 && block < args_.cache.blocks, "block {} of {}", block, args_.cache.blocks);
    return args_.cache.data + block * args_.cache.stride_bytes;
  }

  void read(const std::byte* keys, BlockChoice& memory) const {
    const std::int64_t numbers = kGroupTokens * spec().head_dim;
    if (layout_.element_bytes > 1) return kernels_.widen(keys, format_of(spec().dtype), memory.keys, numbers);
    if (layout_.folds > 1) {
      kernels_.unfold(keys, kFoldedKeys, memory.unfolded, numbers);
      keys = memory.unfolded;
    }
    kernels_.widen_packed(keys, spec().dtype == DType::f8_e4m3 ? Packed::e4m3 : Packed::i8, memory.wide,
                          numbers);
    kernels_.widen(memory.wide, Format::bf16, memory.keys, numbers);
  }

  // Raises the scores of the blocks with the tokens of a group.
  void score(std::int32_t sequence, std::int64_t group, std::int64_t tokens, BlockChoice& memory) const {
    const std::byte* const block = block_of(sequence, group);
    read(block + layout_.keys(0, group % layout_.groups), memory);
    float products[kGroupTokens] = {};
    for (std::int64_t d = 0; d < spec().head_dim; ++d) {
      const float* const keys =
          memory.keys + d / layout_.unit * kGroupTokens * layout_.unit + d % layout_.unit;
      for (std::int64_t t = 0; t < kGroupTokens; ++t) products[t] += memory.q[d] * keys[t * layout_.unit];
    }
    const auto* const scales =
        reinterpret_cast<const float*>(block + layout_.scales(0, group % layout_.groups));
    for (std::int64_t t = 0; t < kGroupTokens && group * kGroupTokens + t < tokens; ++t) {
      float& best = memory.scores[(group * kGroupTokens + t) / args_.block];
      best = std::max(best, spec().scaled() ? products[t] * scales[t] : products[t]);
    }
  }

  const ChooseBlocksArgs& args_;
  const IsaKernels& kernels_;
  const CpuAttentionPlan& plan_;
  const KvLayout layout_;
};

}  // namespace

void choose_blocks(Stream& stream, const ChooseBlocksArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const BlockChooser chooser(args, cpu.kernels());
  const std::int64_t most = static_cast<const CpuAttentionPlan&>(args.plan).most_tokens() / args.block + 1;
  const std::int64_t heads = args.q.size(1);
  cpu.pool().for_units(args.q.size(0) * heads, [&](int rank, std::int64_t i) {
    const KvSpec& spec = args.cache.spec;
    BlockChoice memory(spec, most, cpu.scratch(rank, BlockChoice(spec, most, nullptr).bytes));
    chooser.choose(i / heads, i % heads, memory);
  });
}

}  // namespace octavo::cpu
