// Attention to KV blocks. All threads run the units of the plan, then merge the partial results of rows
// that were split.
#include <algorithm>

#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

void merge_pieces(const AttentionCall& call, const AttentionMerge& merge, std::int64_t head) {
  const std::int64_t n = call.stored.layout.padded_dim;
  alignas(64) float values[kMaxHeadDim];
  for (std::int64_t row = merge.row_begin; row < merge.row_end; ++row) {
    std::fill_n(values, n, 0.0f);
    AttentionState state{values, kNoScore, 0};
    for (std::int64_t piece = merge.piece_begin; piece < merge.piece_end; ++piece) {
      float* partial = call.plan.state(merge.state(head, row, piece));
      call.kernels.merge(state, {partial, partial[n], partial[n + 1]}, n);
    }
    call.write(head, merge.sequence, row, state);
  }
}

}  // namespace

void AttentionCall::add_fixed(std::int64_t head, std::int32_t sequence, std::int64_t row,
                              AttentionState& state) const {
  constexpr float kLog2E = 1.44269504f;
  const std::int64_t fixed = args.fixed_keys.size(0);
  alignas(64) float q[kMaxHeadDim], values[kMaxHeadDim] = {}, scores[kMaxFixedKeys];
  kernels.widen(
      static_cast<const std::byte*>(args.q.data) +
          element(args.q, dim(), head, sequence, row) * static_cast<std::int64_t>(size_of(args.q.dtype)),
      format, q, dim());
  AttentionState added{values, kNoScore, 0};
  for (std::int64_t i = 0; i < fixed; ++i) {
    const float* const key = args.fixed_keys.row<float>(i) + head * dim();
    float sum = 0;
    for (std::int64_t d = 0; d < dim(); ++d) sum += q[d] * key[d];
    scores[i] = sum * args.scale * kLog2E;
    added.maximum = std::max(added.maximum, scores[i]);
  }
  for (std::int64_t i = 0; i < fixed; ++i) {
    const float* const value = args.fixed_values.row<float>(i) + head * value_dim();
    const float share = std::exp2(scores[i] - added.maximum);
    added.sum += share;
    for (std::int64_t d = 0; d < value_dim(); ++d) values[d] += share * value[d];
  }
  kernels.merge(state, added, stored.layout.padded_dim);
}

void attention(Stream& stream, const AttentionArgs& args) {
  if (args.cache.spec.shared_rows()) return attend_rows(stream, args);
  CpuStream& cpu = cpu_stream(stream);
  const auto& plan = static_cast<const CpuAttentionPlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const IsaKernels& kernels = cpu.kernels();
  const bool packed = bits_of(spec.dtype) <= 8;
  KvSpec wide = spec;
  if (packed) wide.dtype = DType::bf16;
  const bool dot = wide.dtype == DType::bf16 && args.q.dtype == DType::bf16 &&
                   kernels.tiles[static_cast<int>(Operand::bf16_dot)] != nullptr;
  const auto operand = [&](const KvSpec& kv) {
    return KvOperand{kv.dtype, KvLayout(kv), kernels.tiles[static_cast<int>(operand_of(kv.dtype, dot))]};
  };
  const AttentionCall call{args,          plan,
                           kernels,       operand(spec),
                           operand(wide), format_of(args.q.dtype),
                           dot,           dot ? kernels.matrix : nullptr};
  CHECK(args.q.size(1) / spec.kv_heads == plan.group(), "the plan is for another number of heads");
  CHECK(plan.window() == 0 || plan.window() == args.window, "a plan for a window of {}, a layer of {}",
        plan.window(), args.window);
  CHECK(plan.causal() == args.causal, "the plan of a layer that is causal and one that is not");

  cpu.pool().for_units(std::ssize(plan.units()), [&](int rank, std::int64_t i) {
    AttentionScratch scratch(spec, cpu.scratch(rank, AttentionScratch(spec, nullptr).bytes));
    AttentionUnitRun(call, plan.units()[static_cast<std::size_t>(i)], scratch).run();
  });
  cpu.pool().for_ranges(
      std::ssize(plan.merges()) * spec.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          merge_pieces(call, plan.merges()[static_cast<std::size_t>(i / spec.kv_heads)], i % spec.kv_heads);
      });
}

}  // namespace octavo::cpu
