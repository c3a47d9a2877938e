// Tests arrays with more than 2^32 bytes or elements. They need several gigabytes, so they have a separate
// label (ctest -L large).
#include <gtest/gtest.h>

#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

// Row r of the matrix is [r, r + cols) of one list of numbers, so that the source is small.
TEST(Large, WeightOfMoreThanTwoToThe31Elements) {
  Backend cpu = make_cpu_backend({}).value();
  TestRandom random(31);
  const std::int64_t cols = 2062;
  const std::int64_t rows = (std::int64_t{1} << 31) / cols + 100;
  const TestTensor numbers = random.tensor(DType::bf16, {rows + cols});
  View matrix = numbers.view();
  matrix.rank = 2;
  matrix.shape = {rows, cols};
  matrix.stride = {1, 1};
  const std::vector<MatrixPart> parts{{.values = matrix}};
  const WeightPtr w = cpu.ops.prepare(*cpu.device, {parts, DType::bf16}).value();
  ASSERT_GT(w->bytes(), std::size_t{1} << 32);

  const TestTensor x = random.tensor(DType::bf16, {2, cols});
  TestTensor y(DType::f32, {2, rows});
  cpu.ops.matmul(*cpu.stream, {.x = x.view(), .w = *w, .y = y.view()});
  for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 101, rows - 1})
    for (std::int64_t i = 0; i < 2; ++i) {
      double expected = 0;
      for (std::int64_t k = 0; k < cols; ++k) expected += double{x[i * cols + k]} * numbers[row + k];
      EXPECT_NEAR(y[i * rows + row], expected, 1e-3) << row;
    }
  std::vector<std::int32_t> ids{static_cast<std::int32_t>(rows - 1)};
  TestTensor embedded(DType::f32, {1, cols});
  cpu.ops.embed(*cpu.stream, {.ids = View::of(std::span(ids)), .table = *w, .out = embedded.view()});
  for (std::int64_t k = 0; k < cols; ++k) ASSERT_EQ(embedded[k], numbers[rows - 1 + k]);
}

// Memory that is never written uses no pages, so the test can allocate a pool of 64 GiB.
TEST(Large, BlocksBeyondFourGigabytes) {
  Backend cpu = make_cpu_backend({}).value();
  const KvSpec spec{.kv_heads = 8, .head_dim = 128, .block_size = 16, .dtype = DType::bf16};
  const std::int64_t stride = std::int64_t{3} << 30;
  const Buffer pool = allocate_host(static_cast<std::size_t>(5 * stride)).value();
  const KvLayer cache{static_cast<std::byte*>(pool.data()), 5, stride, spec};
  TestRandom random(32);
  const TestTensor qkv = random.tensor(DType::bf16, {1, 24 * 128});
  TestTensor q(DType::bf16, {1, 8, 128});
  TestTensor out(DType::bf16, {1, 8 * 128});
  std::vector<std::int32_t> starts{0, 1}, lengths{1}, table{4};
  std::vector<std::int64_t> slots{4 * 16};
  cpu.ops.qkv_store(*cpu.stream, {.qkv = qkv.view(),
                                  .q_heads = 8,
                                  .slots = View::of(std::span(slots)),
                                  .cache = cache,
                                  .q_out = q.view()});
  const auto plan = cpu.ops.make_attention_plan(
      *cpu.device, {.max_tokens = 1, .max_sequences = 1, .max_length = 16, .q_heads = 8, .kv = spec});
  cpu.ops.plan_attention(*cpu.stream, {starts, lengths, table, 1}, **plan);
  cpu.ops.attention(*cpu.stream,
                    {.q = q.view(), .cache = cache, .plan = **plan, .scale = 1, .out = out.view()});
  for (std::int64_t i = 0; i < 8 * 128; ++i)
    ASSERT_EQ(out[i], qkv[16 * 128 + i]);  // with one token, the output is the value of the token
}

}  // namespace
}  // namespace octavo
