// The indexer of sparse attention. Each thread processes one query at a time. The index heads of the query
// are the rows of a product with groups of keys, which the product kernel reads directly.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/cpu/scratch_pieces.h"

namespace octavo::cpu {
namespace {

std::int64_t whole_pieces(std::int64_t tokens) {
  return (tokens + kPieceTokens - 1) / kPieceTokens * kPieceTokens;
}

struct Choice : ScratchPieces {
  Choice(const KvSpec& spec, std::int64_t tokens, std::byte* memory) : ScratchPieces(memory) {
    q = take<std::byte>(std::int64_t{kMaxIndexHeads} * spec.index_dim * 4);
    products = take<float>(kAttentionRows * kScoreStride);
    scores = take<float>(whole_pieces(tokens));
    order = take<std::int32_t>(tokens);
  }

  std::byte* q;     // queries, in the layout that tiles read
  float* products;  // [rows of a tile][tokens of a piece]
  float* scores;
  std::int32_t* order;
};

class Chooser {
 public:
  Chooser(const ChooseTokensArgs& args, const IsaKernels& kernels)
      : args_(args),
        kernels_(kernels),
        plan_(static_cast<const CpuAttentionPlan&>(args.plan)),
        layout_(args.cache.spec),
        dot_(layout_.unit == 2 && args.q.dtype == DType::bf16 &&
             kernels.tiles[static_cast<int>(Operand::bf16_dot)] != nullptr),
        tiles_(kernels.tiles[static_cast<int>(operand_of(spec().dtype, dot_))]) {}

  void choose(std::int64_t query, Choice& memory) const {
    const std::int32_t sequence = plan_.sequence_of(query);
    const std::int64_t row = (query - plan_.first_query(sequence)) * plan_.group();
    const std::int64_t tokens = plan_.position(sequence, row) + 1, most = args_.chosen.size(1);
    auto* const chosen = args_.chosen.row<std::int32_t>(query);
    if (tokens <= most) {
      std::iota(chosen, chosen + tokens, 0);
      std::fill(chosen + tokens, chosen + most, kNoToken);
      return;
    }
    load(query, memory);
    std::fill_n(memory.scores, whole_pieces(tokens), 0.0F);
    for (std::int64_t group = 0; group * kGroupTokens < tokens; group += kPieceTokens / kGroupTokens)
      score(query, sequence, group, (tokens + kGroupTokens - 1) / kGroupTokens, memory);
    keep_best(memory.scores, tokens, memory.order, most, chosen);
  }

 private:
  const KvSpec& spec() const { return args_.cache.spec; }
  std::int64_t x_bytes() const { return dot_ ? 2 : 4; }

  void load(std::int64_t query, Choice& memory) const {
    const std::int64_t numbers = args_.q.size(1) * spec().index_dim;
    const auto element = static_cast<std::int64_t>(size_of(args_.q.dtype));
    const std::byte* const q =
        static_cast<const std::byte*>(args_.q.data) + query * args_.q.stride[0] * element;
    if (dot_) {
      std::copy_n(q, numbers * element, memory.q);
    } else {
      kernels_.widen(q, format_of(args_.q.dtype), reinterpret_cast<float*>(memory.q), numbers);
    }
  }

  const std::byte* block_of(std::int32_t sequence, std::int64_t group) const {
    const std::int32_t block = plan_.block(sequence, group / layout_.groups);
    CHECK(block >= 0 && block < args_.cache.blocks, "block {} of {}", block, args_.cache.blocks);
    return args_.cache.data + block * args_.cache.stride_bytes;
  }
  const std::byte* keys_of(std::int32_t sequence, std::int64_t group) const {
    return block_of(sequence, group) + layout_.keys(0, group % layout_.groups) +
           spec().score_dim() * kGroupTokens * layout_.element_bytes;
  }

  // Computes the scores of the tokens of one piece, which begins at group `first`. `end` is the number of
  // groups of the sequence.
  void score(std::int64_t query, std::int32_t sequence, std::int64_t first, std::int64_t end,
             Choice& memory) const {
    end = std::min(end, first + kPieceTokens / kGroupTokens);
    const float* const weights = args_.weights.row<float>(query);
    const std::int64_t heads = args_.q.size(1);
    for (std::int64_t head = 0, rows; head < heads; head += rows) {
      rows = std::min<std::int64_t>(heads - head, kernels_.tile_rows);
      multiply(sequence, first, end, head, rows, memory);
      for (std::int64_t row = 0; row < rows; ++row)
        add(memory.products + row * kScoreStride, weights[head + row], (end - first) * kGroupTokens,
            memory.scores + first * kGroupTokens);
    }
    // All numbers of a token's key have one scale, which is applied after the product.
    if (spec().dtype == DType::i8)
      for (std::int64_t group = first; group < end; ++group) {
        const auto* const scales = reinterpret_cast<const float*>(block_of(sequence, group) +
                                                                  layout_.scales(0, group % layout_.groups));
        for (std::int64_t t = 0; t < kGroupTokens; ++t) memory.scores[group * kGroupTokens + t] *= scales[t];
      }
  }

  void multiply(std::int32_t sequence, std::int64_t first, std::int64_t end, std::int64_t head,
                std::int64_t rows, Choice& memory) const {
    const bool pair = 2 * kernels_.lanes > kGroupTokens;
    const std::int64_t row_bytes = spec().index_dim * x_bytes();
    for (std::int64_t group = first; group < end; group += pair ? 2 : 1) {
      const std::byte* const keys = keys_of(sequence, group);
      const std::int64_t half = kernels_.lanes * layout_.unit * layout_.element_bytes;
      const std::int64_t next = group + 1 < end ? keys_of(sequence, group + 1) - keys : 0;
      tiles_[rows - 1]({
          .x = memory.q + head * row_bytes,
          .x_row_stride = row_bytes,
          .x_unit_stride = 4,
          .w = &keys,
          .segments = 1,
          .w_offset = 0,
          .steps = spec().index_dim / layout_.unit,
          .step_stride = kGroupTokens * layout_.unit * layout_.element_bytes,
          .vector_stride = pair ? next : half,
          .c = memory.products + (group - first) * kGroupTokens,
          .c_stride = kScoreStride,
          .accumulate = false,
      });
    }
  }

  // Computes scores += weight * max(0, products). NaN counts as 0.
  static void add(const float* products, float weight, std::int64_t tokens, float* scores) {
    for (std::int64_t t = 0; t < tokens; ++t) scores[t] += weight * (products[t] > 0 ? products[t] : 0.0F);
  }

  const ChooseTokensArgs& args_;
  const IsaKernels& kernels_;
  const CpuAttentionPlan& plan_;
  const KvLayout layout_;
  const bool dot_;
  const TileFunction* const tiles_;
};

}  // namespace

void keep_best(float* scores, std::int64_t count, std::int32_t* order, std::int64_t most, std::int32_t* best) {
  // NaN becomes the smallest score.
  for (std::int64_t i = 0; i < count; ++i)
    if (std::isnan(scores[i])) scores[i] = kNoScore;
  std::iota(order, order + count, 0);
  std::nth_element(order, order + most, order + count, [&](auto a, auto b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  });
  std::copy_n(order, most, best);
  std::sort(best, best + most);
}

std::size_t choice_bytes(const KvSpec& spec, std::int64_t tokens) {
  return Choice(spec, tokens, nullptr).bytes;
}

void choose_tokens(Stream& stream, const ChooseTokensArgs& args) {
  if (args.cache.spec.shared_rows()) return choose_entries(stream, args);
  CpuStream& cpu = cpu_stream(stream);
  const Chooser chooser(args, cpu.kernels());
  const std::int64_t most = static_cast<const CpuAttentionPlan&>(args.plan).most_tokens();
  cpu.pool().for_units(args.q.size(0), [&](int rank, std::int64_t query) {
    Choice memory(args.cache.spec, most, cpu.scratch(rank, choice_bytes(args.cache.spec, most)));
    chooser.choose(query, memory);
  });
}

}  // namespace octavo::cpu
