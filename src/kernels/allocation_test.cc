// Tests that steps within the limits allocate no memory, including the first step.
#include <gtest/gtest.h>

#include "base/testing/allocations.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

TEST(Allocation, NoneInAStep) {
  Backend cpu = make_cpu_backend({.threads = 3, .isa = {}}).value();
  const Ops& ops = cpu.ops;
  Stream& stream = *cpu.stream;
  TestRandom random(41);
  constexpr int kTokens = 400;
  constexpr int kLength = 1600;
  constexpr int kSequences = 8;
  const KvSpec spec{.kv_heads = 2, .head_dim = 64, .block_size = 16, .dtype = DType::bf16};
  const TestTensor matrix = random.tensor(DType::bf16, {512, 256});
  const std::vector<MatrixPart> parts{{.values = matrix.view()}};
  const WeightPtr w = ops.prepare(*cpu.device, {parts, DType::bf16}).value();
  const auto plan = ops.make_attention_plan(
      *cpu.device,
      {.max_tokens = kTokens, .max_sequences = kSequences, .max_length = kLength, .q_heads = 4, .kv = spec});
  const std::int64_t block_bytes = ops.kv_block_bytes(spec);
  const std::int64_t blocks = kLength / 16;
  Buffer pool = allocate_host(static_cast<std::size_t>(blocks * block_bytes)).value();
  const KvLayer cache{static_cast<std::byte*>(pool.data()), blocks, block_bytes, spec};
  TestTensor x(DType::bf16, {kTokens, 256}), qkv(DType::bf16, {kTokens, 512}),
      residual(DType::f32, {kTokens, 256});
  TestTensor q(DType::bf16, {kTokens, 4, 64});
  std::vector<std::int32_t> positions(kTokens), table(kSequences * kLength / 16);
  std::vector<std::int64_t> slots(kTokens);
  std::iota(slots.begin(), slots.end(), 0);

  struct Step {
    std::vector<std::int32_t> starts, lengths;
  };
  for (const Step& step : {Step{{0, kTokens}, {kLength}}, Step{{0, 1}, {kLength}},
                           Step{{0, 1, 2, 3, 4, 5, 6, 7, 8}, std::vector<std::int32_t>(8, kLength)},
                           Step{{0, 1, 100, 101}, {7, 500, 1300}}}) {
    const std::int64_t n = step.starts.back();
    const long before = allocations();
    ops.embed(
        stream,
        {.ids = View::of(std::span(positions)).rows(0, n), .table = *w, .out = residual.view().rows(0, n)});
    ops.add_norm(stream, {.residual = residual.view().rows(0, n), .out = x.view().rows(0, n)});
    ops.matmul(stream, {.x = x.view().rows(0, n), .w = *w, .y = qkv.view().rows(0, n)});
    ops.qkv_store(stream, {.qkv = qkv.view().rows(0, n),
                           .q_heads = 4,
                           .slots = View::of(std::span(slots)).rows(0, n),
                           .cache = cache,
                           .q_out = q.view().rows(0, n)});
    ops.plan_attention(stream, {step.starts, step.lengths, table, kLength / 16}, **plan);
    ops.attention(stream,
                  {.q = q.view().rows(0, n), .cache = cache, .plan = **plan, .out = x.view().rows(0, n)});
    ops.activate(stream, {.x = qkv.view().rows(0, n), .y = x.view().rows(0, n)});
    EXPECT_EQ(allocations() - before, 0);
  }
}

}  // namespace
}  // namespace octavo
