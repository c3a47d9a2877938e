// Attention over pages: the plan's units on all threads, then the merges of what was shared out.
#include <algorithm>

#include "kernels/cpu/attention_unit.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"

namespace octavo::cpu {
namespace {

void merge_pieces(const AttentionCall& call, const AttentionMerge& merge, std::int64_t head) {
  const std::int64_t n = call.layout.padded_dim;
  alignas(64) float values[kMaxHeadDim];
  for (std::int64_t row = merge.row_begin; row < merge.row_end; ++row) {
    std::fill_n(values, n, 0.0f);
    AttentionState state{values, kNoScore, 0};
    for (std::int64_t piece = 0; piece < merge.pieces; ++piece) {
      float* partial = call.plan.state(merge.state(head, row, piece));
      call.kernels.merge(state, {partial, partial[n], partial[n + 1]}, n);
    }
    call.write(head, merge.sequence, row, state);
  }
}

}  // namespace

void attention(Stream& stream, const AttentionArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const auto& plan = static_cast<const CpuAttentionPlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const TileFunction* dot_tiles = cpu.kernels().tiles[static_cast<int>(Operand::bf16_dot)];
  KvSpec wide = spec;  // as the tiles meet it
  if (size_of(spec.dtype) == 1) wide.dtype = DType::bf16;
  const bool dot = wide.dtype == DType::bf16 && args.q.dtype == DType::bf16 && dot_tiles != nullptr;
  const Operand operand = dot                         ? Operand::bf16_dot
                          : wide.dtype == DType::bf16 ? Operand::bf16
                          : wide.dtype == DType::f16  ? Operand::f16
                                                      : Operand::f32;
  const AttentionCall call{args,
                           plan,
                           cpu.kernels(),
                           KvLayout(spec),
                           KvLayout(wide),
                           format_of(args.q.dtype),
                           dot,
                           cpu.kernels().tiles[static_cast<int>(operand)]};
  CHECK(args.q.size(1) / spec.kv_heads == plan.group(), "the plan is for another number of heads");

  cpu.pool().for_ranges(std::ssize(plan.units()), 1, [&](std::int64_t begin, std::int64_t end) {
    AttentionScratch scratch;
    for (std::int64_t i = begin; i < end; ++i)
      AttentionUnitRun(call, plan.units()[static_cast<std::size_t>(i)], scratch).run();
  });
  cpu.pool().for_ranges(
      std::ssize(plan.merges()) * spec.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          merge_pieces(call, plan.merges()[static_cast<std::size_t>(i / spec.kv_heads)], i % spec.kv_heads);
      });
}

}  // namespace octavo::cpu
