// Attention over pages, where they lie: a block's keys and values are operands of the product kernel, so
// nothing is gathered. Tiles of rows over pieces of keys with a running softmax, as in FlashAttention (Dao et
// al., 2022); long contexts are shared out by pieces as in Flash-Decoding (Dao et al., 2023).
#include <algorithm>
#include <cstring>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kPieceGroups = kPieceTokens / kGroupTokens;
constexpr std::int64_t kScoreStride = kPieceTokens + kGroupTokens;  // a tile call may write a group too many
constexpr std::int64_t kMostTileRows = 12;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Working memory of one unit; on the stack of its thread.
struct Scratch {
  alignas(64) std::byte q[kAttentionRows * kMaxHeadDim * 4];
  alignas(64) float values[kAttentionRows * kMaxHeadDim];
  alignas(64) float piece_values[kMostTileRows * kMaxHeadDim];
  alignas(64) float scores[kMostTileRows * kScoreStride];
  alignas(64) std::byte p[kMostTileRows * kScoreStride * 4];
  alignas(64) std::byte tail[kGroupTokens * kMaxHeadDim * 4];
  AttentionState states[kAttentionRows];
};

// Groups [begin, end) of a piece.
struct Groups {
  std::int64_t begin;
  std::int64_t end;
};

// What is the same for all units of a call.
struct Call {
  const AttentionArgs& args;
  const CpuAttentionPlan& plan;
  const IsaKernels& kernels;
  const KvLayout layout;
  const Format format;  // of q and out
  const bool dot;
  const TileFunction* tiles;

  std::int64_t dim() const { return args.cache.spec.head_dim; }
  std::int64_t x_bytes() const { return dot ? 2 : 4; }  // of q and p as the tiles want them

  // Tokens that rows [begin, end) of a sequence see, in groups of a piece.
  Groups visible(const AttentionUnit& unit, std::int64_t row_begin, std::int64_t row_end,
                 std::int64_t piece) const {
    const std::int64_t first = first_token(plan.position(unit.sequence, row_begin)) - piece * kPieceTokens;
    const std::int64_t past = plan.position(unit.sequence, row_end - 1) + 1 - piece * kPieceTokens;
    return {std::clamp<std::int64_t>(first, 0, kPieceTokens) / kGroupTokens,
            (std::clamp<std::int64_t>(past, 0, kPieceTokens) + kGroupTokens - 1) / kGroupTokens};
  }
  std::int64_t first_token(std::int64_t position) const {
    return args.window > 0 ? std::max<std::int64_t>(0, position - args.window + 1) : 0;
  }
};

class UnitRun {
 public:
  UnitRun(const Call& call, const AttentionUnit& unit, std::int64_t head, Scratch& scratch)
      : call_(call), unit_(unit), head_(head), scratch_(scratch) {}

  void run() {
    load_queries();
    for (std::int64_t piece = unit_.piece_begin; piece < unit_.piece_end; ++piece) {
      const Groups groups = call_.visible(unit_, unit_.row_begin, unit_.row_end, piece);
      if (groups.begin < groups.end) locate(piece, groups);
      for (std::int64_t row = unit_.row_begin; row < unit_.row_end; row += call_.kernels.tile_rows)
        attend(piece, row, std::min<std::int64_t>(row + call_.kernels.tile_rows, unit_.row_end));
    }
    if (unit_.merge < 0) write_output();
  }

 private:
  std::int64_t q_stride() const { return call_.dim() * call_.x_bytes(); }

  // q of the unit's rows, and states that have seen nothing.
  void load_queries() {
    const View& q = call_.args.q;
    for (std::int64_t row = unit_.row_begin; row < unit_.row_end; ++row) {
      const std::int64_t query = call_.plan.first_query(unit_.sequence) + row / call_.plan.group();
      const std::int64_t q_head = head_ * call_.plan.group() + row % call_.plan.group();
      const std::byte* from =
          static_cast<const std::byte*>(q.data) +
          (query * q.stride[0] + q_head * call_.dim()) * static_cast<std::int64_t>(size_of(q.dtype));
      std::byte* to = scratch_.q + (row - unit_.row_begin) * q_stride();
      if (call_.dot) {
        std::memcpy(to, from, static_cast<std::size_t>(q_stride()));
      } else {
        call_.kernels.widen(from, call_.format, reinterpret_cast<float*>(to), call_.dim());
      }
      const std::int64_t i = row - unit_.row_begin;
      scratch_.states[i] = {scratch_.values + i * call_.layout.padded_dim, kNothing, 0};
    }
    std::fill_n(scratch_.values, (unit_.row_end - unit_.row_begin) * call_.layout.padded_dim, 0.0f);
  }

  // Addresses of a piece's keys and values. Slots past the sequence's end may hold anything, also what times
  // 0 is not 0: a group of values that has such slots is copied with zeros in their place.
  void locate(std::int64_t piece, Groups groups) {
    const KvLayer& cache = call_.args.cache;
    const KvLayout& layout = call_.layout;
    for (std::int64_t g = groups.begin; g < groups.end; ++g) {
      const std::int64_t group = piece * kPieceGroups + g;
      const std::int32_t block = call_.plan.block(unit_.sequence, group / layout.groups);
      CHECK(block >= 0 && block < cache.blocks, "block {} of {}", block, cache.blocks);
      const std::byte* data = cache.data + block * cache.stride_bytes;
      keys_[g] = data + layout.keys(head_, group % layout.groups);
      values_[g] = data + layout.values(head_, group % layout.groups);
      const std::int64_t there = call_.plan.length(unit_.sequence) - group * kGroupTokens;
      if (there < kGroupTokens) values_[g] = without_slots_from(there, values_[g]);
    }
  }

  const std::byte* without_slots_from(std::int64_t there, const std::byte* values) {
    const KvLayout& layout = call_.layout;
    const std::int64_t token_bytes = layout.padded_dim * layout.element_bytes;
    const std::int64_t whole = there / layout.unit * layout.unit;
    std::memcpy(scratch_.tail, values, static_cast<std::size_t>(whole * token_bytes));
    std::memset(scratch_.tail + whole * token_bytes, 0,
                static_cast<std::size_t>((kGroupTokens - whole) * token_bytes));
    if (whole < there)  // the first of a pair
      for (std::int64_t d = 0; d < layout.padded_dim; ++d) {
        const std::int64_t at = whole * token_bytes + d * layout.unit * layout.element_bytes;
        std::memcpy(scratch_.tail + at, values + at, static_cast<std::size_t>(layout.element_bytes));
      }
    return scratch_.tail;
  }

  // Rows of one tile over one piece.
  void attend(std::int64_t piece, std::int64_t row_begin, std::int64_t row_end) {
    const Groups groups = call_.visible(unit_, row_begin, row_end, piece);
    SoftmaxRow results[kMostTileRows];
    if (groups.begin < groups.end) {
      score(row_begin, row_end, groups);
      for (std::int64_t row = row_begin; row < row_end; ++row)
        results[row - row_begin] = softmax(piece, row, row - row_begin, groups);
      mix_values(row_end - row_begin, groups);
    }
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const std::int64_t i = row - row_begin;
      AttentionState found{scratch_.piece_values + i * c_stride(), kNothing, 0};
      if (groups.begin < groups.end) {
        found.maximum = results[i].maximum;
        found.sum = results[i].sum;
      }
      if (unit_.merge < 0) {
        call_.kernels.merge(scratch_.states[row - unit_.row_begin], found, call_.layout.padded_dim);
      } else {
        keep_partial(piece, row, found);
      }
    }
  }

  std::int64_t vectors_bytes(std::int64_t vectors) const {
    return vectors * call_.kernels.lanes * call_.layout.unit * call_.layout.element_bytes;
  }
  std::int64_t c_stride() const {
    const std::int64_t width = 2 * call_.kernels.lanes;
    return (call_.layout.padded_dim + width - 1) / width * width;
  }

  void score(std::int64_t row_begin, std::int64_t row_end, Groups groups) {
    const KvLayout& layout = call_.layout;
    const std::int64_t groups_per_call = 2 * call_.kernels.lanes / kGroupTokens;
    for (std::int64_t g = groups.begin; g < groups.end; g += groups_per_call) {
      // Two vectors are two groups, or the halves of one; a last group without a partner is its own.
      std::int64_t vector_stride = vectors_bytes(1);
      if (groups_per_call == 2) vector_stride = g + 1 < groups.end ? keys_[g + 1] - keys_[g] : 0;
      call_.tiles[row_end - row_begin - 1]({
          .x = scratch_.q + (row_begin - unit_.row_begin) * q_stride(),
          .x_row_stride = q_stride(),
          .x_unit_stride = 4,
          .w = &keys_[g],
          .segments = 1,
          .w_offset = 0,
          .steps = call_.dim() / layout.unit,
          .step_stride = kGroupTokens * layout.unit * layout.element_bytes,
          .vector_stride = vector_stride,
          .c = scratch_.scores + g * kGroupTokens,
          .c_stride = kScoreStride,
          .accumulate = false,
      });
    }
  }

  SoftmaxRow softmax(std::int64_t piece, std::int64_t row, std::int64_t i, Groups groups) {
    const std::int64_t position = call_.plan.position(unit_.sequence, row);
    SoftmaxRow job{.scores = scratch_.scores + i * kScoreStride,
                   .first = groups.begin * kGroupTokens,
                   .last = groups.end * kGroupTokens,
                   .begin = call_.first_token(position) - piece * kPieceTokens,
                   .end = position + 1 - piece * kPieceTokens,
                   .scale = call_.args.scale,
                   .soft_cap = call_.args.soft_cap,
                   .p = scratch_.p + i * kScoreStride * call_.x_bytes(),
                   .p_format = call_.dot ? Format::bf16 : Format::f32,
                   .maximum = kNothing,
                   .sum = 0};
    call_.kernels.softmax(job);
    return job;
  }

  void mix_values(std::int64_t rows, Groups groups) {
    const KvLayout& layout = call_.layout;
    const std::int64_t width = 2 * call_.kernels.lanes;
    for (std::int64_t d = 0; d < layout.padded_dim; d += width) {
      call_.tiles[rows - 1]({
          .x = scratch_.p + groups.begin * kGroupTokens * call_.x_bytes(),
          .x_row_stride = kScoreStride * call_.x_bytes(),
          .x_unit_stride = 4,
          .w = &values_[groups.begin],
          .segments = groups.end - groups.begin,
          .w_offset = d * layout.unit * layout.element_bytes,
          .steps = kGroupTokens / layout.unit,
          .step_stride = layout.padded_dim * layout.unit * layout.element_bytes,
          .vector_stride = d + call_.kernels.lanes < layout.padded_dim ? vectors_bytes(1) : 0,
          .c = scratch_.piece_values + d,
          .c_stride = c_stride(),
          .accumulate = false,
      });
    }
  }

  void keep_partial(std::int64_t piece, std::int64_t row, const AttentionState& found) {
    const AttentionMerge& merge = call_.plan.merges()[static_cast<std::size_t>(unit_.merge)];
    float* to = call_.plan.state(merge.state(head_, row, piece));
    if (found.sum != 0) std::copy_n(found.values, call_.layout.padded_dim, to);
    to[call_.layout.padded_dim] = found.maximum;
    to[call_.layout.padded_dim + 1] = found.sum;
  }

  void write_output();

  const Call& call_;
  const AttentionUnit& unit_;
  const std::int64_t head_;
  Scratch& scratch_;
  const std::byte* keys_[kPieceGroups];
  const std::byte* values_[kPieceGroups];
};

void write_row(const Call& call, std::int32_t sequence, std::int64_t head, std::int64_t row,
               const AttentionState& state) {
  const View& out = call.args.out;
  const std::int64_t query = call.plan.first_query(sequence) + row / call.plan.group();
  const std::int64_t q_head = head * call.plan.group() + row % call.plan.group();
  std::byte* to = static_cast<std::byte*>(out.data) + (query * out.stride[0] + q_head * call.dim()) *
                                                          static_cast<std::int64_t>(size_of(out.dtype));
  call.kernels.finish(state, call.format, to, call.dim());
}

void UnitRun::write_output() {
  for (std::int64_t row = unit_.row_begin; row < unit_.row_end; ++row)
    write_row(call_, unit_.sequence, head_, row, scratch_.states[row - unit_.row_begin]);
}

void merge_pieces(const Call& call, const AttentionMerge& merge, std::int64_t head) {
  const std::int64_t n = call.layout.padded_dim;
  alignas(64) float values[kMaxHeadDim];
  for (std::int64_t row = merge.row_begin; row < merge.row_end; ++row) {
    std::fill_n(values, n, 0.0f);
    AttentionState state{values, kNothing, 0};
    for (std::int64_t piece = 0; piece < merge.pieces; ++piece) {
      float* partial = call.plan.state(merge.state(head, row, piece));
      call.kernels.merge(state, {partial, partial[n], partial[n + 1]}, n);
    }
    write_row(call, merge.sequence, head, row, state);
  }
}

}  // namespace

void attention(Stream& stream, const AttentionArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const auto& plan = static_cast<const CpuAttentionPlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const TileFunction* dot_tiles = cpu.kernels().tiles[static_cast<int>(Operand::bf16_dot)];
  const bool dot = spec.dtype == DType::bf16 && args.q.dtype == DType::bf16 && dot_tiles != nullptr;
  const Format kv_format = format_of(spec.dtype);
  const Operand operand = dot                         ? Operand::bf16_dot
                          : kv_format == Format::bf16 ? Operand::bf16
                          : kv_format == Format::f16  ? Operand::f16
                                                      : Operand::f32;
  const Call call{args,
                  plan,
                  cpu.kernels(),
                  KvLayout(spec),
                  format_of(args.q.dtype),
                  dot,
                  cpu.kernels().tiles[static_cast<int>(operand)]};
  CHECK(args.q.size(1) / spec.kv_heads == plan.group(), "the plan is for another number of heads");

  cpu.pool().for_ranges(
      std::ssize(plan.units()) * spec.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
        Scratch scratch;
        for (std::int64_t i = begin; i < end; ++i)
          UnitRun(call, plan.units()[static_cast<std::size_t>(i / spec.kv_heads)], i % spec.kv_heads, scratch)
              .run();
      });
  cpu.pool().for_ranges(
      std::ssize(plan.merges()) * spec.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          merge_pieces(call, plan.merges()[static_cast<std::size_t>(i / spec.kv_heads)], i % spec.kv_heads);
      });
}

}  // namespace octavo::cpu
