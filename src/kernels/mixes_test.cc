// Compares operators that mix rows, and GramRowsArgs, with the reference: on the CPU with every instruction
// set of this processor, and on CUDA.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

class Mixes : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Mixes, testing::ValuesIn(test_backends()), test_backend_name);

TEST_P(Mixes, Sources) {
  TestRandom random(1);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t n = random.integer(1, 7), sources = random.integer(1, 9);
    const std::int64_t dim = random.integer(1, random.coin() ? 40 : 700);
    const TestTensor x = random.tensor(DType::f32, {n, sources, dim}, -2, 2);
    const TestTensor last = random.tensor(DType::f32, {n, dim}, -2, 2);
    const TestTensor query = random.tensor(DType::f32, {dim}, -1, 1);
    const bool with_last = random.coin();
    const auto run = [&](Backend& backend) {
      TestTensor mixed = last;
      OnDevice on(backend);
      const View out = on(mixed.view());
      backend.ops.mix_sources(*backend.stream, {.x = on(x.view()),
                                                .last = with_last ? out : View{},
                                                .query = on(query.view()),
                                                .eps = 1e-5F,
                                                .out = out});
      on.fetch();
      return mixed;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 2e-5, 1e-4), 1) << sources << " x " << dim;
  }
}

TEST_P(Mixes, Heads) {
  TestRandom random(2);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t n = random.integer(1, 7), heads = random.integer(1, 9), dim = random.integer(1, 300);
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor q = random.tensor(type, {n, heads, dim}, -1, 1);
    const TestTensor weight = random.tensor(DType::f32, {heads, dim}, -1, 1);
    const TestTensor bias = random.tensor(DType::f32, {heads}, -1, 1);
    const TestTensor first = random.tensor(type, {n, heads * dim}, -2, 2);
    const TestTensor second = random.tensor(type, {n, heads * dim}, -2, 2);
    const auto run = [&](Backend& backend) {
      TestTensor mixed = second;
      OnDevice on(backend);
      backend.ops.mix_heads(*backend.stream, {.q = on(q.view()),
                                              .weight = on(weight.view()),
                                              .bias = on(bias.view()),
                                              .first = on(first.view()),
                                              .second = on(mixed.view()),
                                              .y = on(mixed.view())});
      on.fetch();
      return mixed;
    };
    const double step = type == DType::f32 ? 2e-5 : 1e-2;
    ASSERT_LE(difference(run(*tested), run(reference), step, step), 1) << heads << " x " << dim;
  }
}

// Two texts in one step: the second one continues after a token.
TEST_P(Mixes, RowsOfGrams) {
  constexpr std::int32_t kStop = 7;
  std::int32_t ids[] = {3, 5, kStop, 4, 2, 9}, positions[] = {0, 1, 2, 3, 1, 2}, starts[] = {0, 4, 6};
  std::int32_t slots[] = {1, 0}, copies[] = {-1, -1, 2, -1, -1, -1};
  const GramTable tables[] = {{2, 1000}, {3, 101}};
  float state[3][1][2] = {{{6 + 1, 0}}, {{5, 5}}, {{-1, -1}}};
  std::int32_t rows[2][6];
  OnDevice on(*tested);
  const auto view = [&](auto& items, std::initializer_list<std::int64_t> shape) {
    using T = std::remove_all_extents_t<std::remove_reference_t<decltype(items)>>;
    return on(View::of(reinterpret_cast<T*>(&items), dtype_of<T>, shape));
  };
  tested->ops.gram_rows(*tested->stream, {.ids = view(ids, {6}),
                                          .vocab = 10,
                                          .stop = kStop,
                                          .tables = tables,
                                          .state = view(state, {3, 1, 2}),
                                          .plan = {.slots = view(slots, {2}),
                                                   .starts = view(starts, {3}),
                                                   .positions = view(positions, {6}),
                                                   .copies = view(copies, {6})},
                                          .rows = view(rows, {2, 6})});
  on.fetch();
  const std::int32_t pairs[] = {3, 35, 57, 4, 62, 29}, triples[] = {3, 35, 357 % 101, 4, 62, 629 % 101};
  for (int t = 0; t < 6; ++t) {
    EXPECT_EQ(rows[0][t], pairs[t]) << t;
    EXPECT_EQ(rows[1][t], triples[t]) << t;
  }
  EXPECT_EQ(state[1][0][0], 4 + 1);
  EXPECT_EQ(state[1][0][1], kStop + 1);
  EXPECT_EQ(state[2][0][0], kStop + 1);
  EXPECT_EQ(state[0][0][0], 9 + 1);
}

}  // namespace
}  // namespace octavo
