// Compares every operator with the reference: on the CPU with every instruction set of this processor, and
// on CUDA.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

class Operators : public testing::TestWithParam<TestBackend> {
 protected:
  void SetUp() override {
    auto made = GetParam().make(3);
    if (!made) GTEST_SKIP() << made.error().message;
    tested.emplace(*std::move(made));
  }
  WeightPtr prepare(Backend& backend, const TestTensor& w, DType activation) {
    const std::vector<MatrixPart> parts{{.values = w.view()}};
    return backend.ops.prepare(*backend.device, {parts, activation}).value();
  }

  std::optional<Backend> tested;
  Backend reference = make_reference_backend();
};

INSTANTIATE_TEST_SUITE_P(Backends, Operators, testing::ValuesIn(test_backends()), test_backend_name);

TEST_P(Operators, Matmul) {
  TestRandom random(1);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t m = random.integer(1, random.coin() ? 2 : 40);
    const std::int64_t cols = random.integer(1, random.coin() ? 40 : 2600);
    const std::int64_t split = random.integer(1, 70);
    const std::int64_t rows = split + random.integer(1, 70);
    const DType format = random.pick({DType::f32, DType::bf16, DType::f16});
    const DType activation = random.pick({DType::f32, DType::bf16});
    const TestTensor top = random.tensor(format, {split, cols});
    const TestTensor rest = random.tensor(format, {rows - split, cols});
    const std::vector<MatrixPart> parts{{.values = top.view()}, {.values = rest.view()}};
    const WeightPtr w = tested->ops.prepare(*tested->device, {parts, activation}).value();
    ASSERT_EQ(w->activation(), format == DType::bf16 ? activation : DType::f32);
    const WeightPtr expected_w = reference.ops.prepare(*reference.device, {parts, w->activation()}).value();
    const TestTensor x = random.tensor(w->activation(), {m, cols});
    const TestTensor bias = random.tensor(DType::f32, {rows});
    const bool with_bias = random.coin();
    TestTensor y(random.coin() ? DType::f32 : w->activation(), {m, rows});
    TestTensor expected = y;
    OnDevice on(*tested);
    tested->ops.matmul(*tested->stream,
                       {on(x.view()), *w, with_bias ? on(bias.view()) : View{}, on(y.view())});
    on.fetch();
    reference.ops.matmul(*reference.stream,
                         {x.view(), *expected_w, with_bias ? bias.view() : View{}, expected.view()});
    ASSERT_LE(difference(y, expected, 2e-7 * static_cast<double>(cols) + 1e-6, last_digit(y.dtype())), 1)
        << m << " x " << rows << " x " << cols << " " << name(format) << " " << name(activation);
  }
}

TEST_P(Operators, Embed) {
  TestRandom random(2);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 20);
    const std::int64_t rows = random.integer(1, 100);
    const std::int64_t dim = random.integer(1, 1200);
    const TestTensor table = random.tensor(random.pick({DType::f32, DType::bf16, DType::f16}), {rows, dim});
    const TestTensor learned = random.tensor(table.dtype(), {rows, dim});
    std::vector<std::int32_t> ids, positions;
    for (int i = 0; i < n; ++i) ids.push_back(random.integer(0, static_cast<int>(rows) - 1));
    for (int i = 0; i < n; ++i) positions.push_back(random.integer(0, static_cast<int>(rows) - 1));
    const std::vector<std::int32_t> types(positions.rbegin(), positions.rend());
    const bool with_positions = random.coin(), with_types = random.coin();
    const float scale = random.pick({1.0f, 3.7f});
    const auto run = [&](Backend& backend) {
      const WeightPtr t = prepare(backend, table, DType::f32);
      const WeightPtr p = prepare(backend, learned, DType::f32);
      TestTensor out(DType::f32, {n, dim});
      OnDevice on(backend);
      backend.ops.embed(*backend.stream, {.ids = on(View::of(std::span(ids))),
                                          .table = *t,
                                          .scale = scale,
                                          .position_table = with_positions ? p.get() : nullptr,
                                          .positions = on(View::of(std::span(positions))),
                                          .type_table = with_types ? t.get() : nullptr,
                                          .types = on(View::of(std::span(types))),
                                          .out = on(out.view())});
      on.fetch();
      return out;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 1e-6, 1e-6), 1);
  }
}

TEST_P(Operators, Pool) {
  TestRandom random(31);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::int32_t> starts{random.integer(0, 3)};
    for (int s = random.integer(1, 5); s > 0; --s) starts.push_back(starts.back() + random.integer(1, 40));
    const std::int64_t sequences = std::ssize(starts) - 1, dim = random.integer(1, 1200);
    const TestTensor x = random.tensor(DType::f32, {starts.back() + random.integer(0, 3), dim}, -1, 1);
    const Pool pool =
        random.pick({Pool::first, Pool::last, Pool::mean, Pool::max, Pool::sum_by_root, Pool::weighted});
    const auto run = [&](Backend& backend) {
      TestTensor out(DType::f32, {sequences, dim});
      OnDevice on(backend);
      backend.ops.pool(*backend.stream, {.x = on(x.view()),
                                         .starts = on(View::of(std::span(starts))),
                                         .pool = pool,
                                         .out = on(out.view())});
      on.fetch();
      return out;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 1e-6, 1e-6), 1);
  }
}

// Covers positions up to the limit of single precision, which are beyond the longest contexts of models.
TEST_P(Operators, Angles) {
  TestRandom random(41);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t n = random.integer(1, 20), pairs = random.integer(1, 200);
    std::vector<std::int32_t> positions;
    for (int i = 0; i < n; ++i) positions.push_back(random.integer(0, random.pick({100, 1 << 24})));
    const TestTensor frequencies = random.tensor(DType::f32, {pairs}, 0, 1);
    const float scale = random.pick({1.0f, 1.19f});
    const auto run = [&](Backend& backend) {
      TestTensor both(DType::f32, {2 * n, pairs});
      OnDevice on(backend);
      backend.ops.angles(*backend.stream, {.positions = on(View::of(std::span(positions))),
                                           .frequencies = on(frequencies.view()),
                                           .scale = scale,
                                           .cos = on(both.view()).rows(0, n),
                                           .sin = on(both.view()).rows(n, n)});
      on.fetch();
      return both;
    };
    const TestTensor got = run(*tested);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const double angle = static_cast<float>(positions[static_cast<std::size_t>(i)]) * frequencies[pair];
        ASSERT_NEAR(got[i * pairs + pair], scale * std::cos(angle), 1e-6);
        ASSERT_NEAR(got[(n + i) * pairs + pair], scale * std::sin(angle), 1e-6);
      }
    ASSERT_LE(difference(got, run(reference), 0, 1e-6), 1);
  }
}

TEST_P(Operators, AddNorm) {
  TestRandom random(3);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t n = random.integer(1, 30);
    const std::int64_t dim = random.integer(2, random.coin() ? 40 : 3000);
    const DType in = random.pick({DType::f32, DType::bf16, DType::f16});
    const DType out_type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor residual = random.tensor(DType::f32, {n, dim}, -1, 3);
    const TestTensor delta = random.tensor(in, {n, dim});
    const TestTensor weights = random.tensor(DType::f32, {4, dim}), scale = random.tensor(DType::f32, {1});
    const auto norm = [&](std::int64_t i) {
      const NormKind kind = random.pick({NormKind::none, NormKind::rms, NormKind::layer, NormKind::affine});
      const View all = weights.view();
      return Norm{kind, 1e-5f, View::of(all.row<float>(i), DType::f32, {dim}),
                  random.coin() ? View::of(all.row<float>(i + 1), DType::f32, {dim}) : View{}};
    };
    TestTensor out(out_type, {n, dim});
    const AddNormArgs args{.residual = {},
                           .delta = random.coin() ? delta.view() : View{},
                           .delta_scale = random.pick({1.0f, 0.22f}),
                           .delta_norm = norm(0),
                           .residual_scale = random.coin() ? scale.view() : View{},
                           .norm = norm(2),
                           .replace = random.coin(),
                           .out = random.integer(0, 9) > 0 ? out.view() : View{}};
    const auto run = [&](Backend& backend) {
      std::pair result{residual, out};
      OnDevice on(backend);
      AddNormArgs device_args = args;
      device_args.residual = on(result.first.view());
      device_args.delta = on(args.delta);
      device_args.residual_scale = on(args.residual_scale);
      device_args.delta_norm = on(args.delta_norm);
      device_args.norm = on(args.norm);
      if (args.out) device_args.out = on(result.second.view());
      backend.ops.add_norm(*backend.stream, device_args);
      on.fetch();
      return result;
    };
    const auto [got_residual, got] = run(*tested);
    const auto [expected_residual, expected] = run(reference);
    ASSERT_LE(difference(got_residual, expected_residual, 3e-6, 1e-6), 1);
    ASSERT_LE(difference(got, expected, 2e-5, 1.01 * last_digit(out_type) + 1e-6), 1);
  }
}

TEST_P(Operators, Activate) {
  TestRandom random(4);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t n = random.integer(1, 20);
    const std::int64_t h = random.integer(1, 700);
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const Activation kind =
        random.pick({Activation::silu, Activation::gelu, Activation::gelu_tanh, Activation::relu,
                     Activation::relu_squared, Activation::sigmoid, Activation::tanh, Activation::softplus,
                     Activation::swigluoai, Activation::xielu});
    const bool gated = kind == Activation::swigluoai || (kind != Activation::xielu && random.coin());
    const TestTensor slopes = random.tensor(DType::f32, {2}, -1, 1);
    TestTensor x = random.tensor(type, {n, gated ? 2 * h : h}, -9, 9);
    x.set(0, random.pick({-200.0f, 200.0f, std::nanf(""), 0.0f}));
    TestTensor y(type, {n, h});
    TestTensor expected = y;
    OnDevice on(*tested);
    tested->ops.activate(*tested->stream,
                         {on(x.view()), kind, gated, 1.7f, 5.0f, on(slopes.view()), on(y.view())});
    on.fetch();
    reference.ops.activate(*reference.stream,
                           {x.view(), kind, gated, 1.7f, 5.0f, slopes.view(), expected.view()});
    ASSERT_LE(difference(y, expected, 5e-6, 1.01 * last_digit(type) + 1e-6), 1) << static_cast<int>(kind);
  }
}

TEST_P(Operators, RowsOfOtherRanksAreZero) {
  std::vector<std::int32_t> ids(700);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 50);
  const OwnRows rows{20, 15};
  std::vector<std::int32_t> own(ids.size());
  TestTensor x(DType::f32, {700, 300});
  std::fill_n(x.view().as<float>(), x.elements(), 2.5F);
  OnDevice on(*tested);
  tested->ops.own_ids(
      *tested->stream,
      {.ids = on(View::of(std::span(ids))), .rows = rows, .own = on(View::of(std::span(own)))});
  tested->ops.keep_own_rows(*tested->stream,
                            {.ids = on(View::of(std::span(ids))), .rows = rows, .x = on(x.view())});
  on.fetch();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool here = ids[i] >= 20 && ids[i] < 35;
    ASSERT_EQ(own[i], here ? ids[i] - 20 : 0);
    for (const std::int64_t k : {0, 150, 299})
      ASSERT_EQ(x[static_cast<std::int64_t>(i) * 300 + k], here ? 2.5F : 0.0F);
  }
}

// Two ranks have the halves of each row. The rows have gaps.
TEST_P(Operators, NormsOverTheRowsOfSeveralRanks) {
  TestRandom random(8);
  for (const DType type : {DType::f32, DType::bf16}) {
    const TestTensor x = random.tensor(type, {9, 2700}, -3, 3),
                     weight = random.tensor(DType::f32, {2500}, -1, 1);
    const auto run = [&](Backend& backend) {
      TestTensor y = x, sums(DType::f32, {9, 2});
      OnDevice on(backend);
      const View rows = on(y.view()).columns(100, 2500), sum = on(sums.view()).columns(1, 1);
      backend.ops.sum_squares(*backend.stream, {.x = rows, .factor = 0.5, .sums = sum});
      backend.ops.norm_by_squares(
          *backend.stream,
          {.x = rows, .sums = sum, .count = 5000, .eps = 1e-5F, .weight = on(weight.view())});
      on.fetch();
      return y;
    };
    const double relative = type == DType::f32 ? 1e-5 : 1e-2;
    ASSERT_LE(difference(run(*tested), run(reference), 1e-5, relative), 1);
  }
}

TEST_P(Operators, GatherRowsAndScaleLogits) {
  TestRandom random(5);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 30);
    const std::int64_t r = random.integer(1, 40);
    const std::int64_t dim = random.pick({7, 64, 1000, 40000});
    const TestTensor x = random.tensor(DType::f32, {n, dim}, -100, 100);
    const TestTensor narrow = random.tensor(random.pick({DType::bf16, DType::f16}), {n, dim});
    std::vector<std::int32_t> rows;
    for (int i = 0; i < r; ++i) rows.push_back(random.integer(0, static_cast<int>(n) - 1));
    const auto copied = [&](Backend& backend) {
      TestTensor out(narrow.dtype(), {r, dim});
      OnDevice on(backend);
      backend.ops.gather_rows(*backend.stream, {on(narrow.view()), on(View::of(std::span(rows))), on(out.view())});
      on.fetch();
      return out;
    };
    ASSERT_EQ(copied(*tested), copied(reference));
    const float cap = random.pick({0.0f, 30.0f});
    const auto run = [&](Backend& backend) {
      TestTensor out(DType::f32, {r, dim});
      OnDevice on(backend);
      backend.ops.gather_rows(*backend.stream, {on(x.view()), on(View::of(std::span(rows))), on(out.view())});
      backend.ops.scale_logits(*backend.stream, {on(out.view()), 0.3f, cap});
      on.fetch();
      return out;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 5e-6, 1e-6), 1);
  }
}

TEST_P(Operators, ScaleRows) {
  TestRandom random(9);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 30), dim = random.pick({7, 64, 1000, 3000});
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const bool chosen = random.coin();
    const TestTensor x = random.tensor(type, {n, dim});
    const TestTensor factors = random.tensor(DType::f32, {chosen ? 50 : n}, -3, 3);
    std::vector<std::int32_t> rows;
    for (int i = 0; i < n; ++i) rows.push_back(random.integer(0, 49));
    const auto run = [&](Backend& backend) {
      TestTensor y = x;
      OnDevice on(backend);
      backend.ops.scale_rows(*backend.stream, {.x = on(y.view()),
                                               .factors = on(factors.view()),
                                               .rows = chosen ? on(View::of(std::span(rows))) : View{},
                                               .y = on(y.view())});
      on.fetch();
      return y;
    };
    ASSERT_EQ(run(*tested), run(reference)) << dim << " " << name(type);
  }
}

TEST_P(Operators, Clamp) {
  TestRandom random(10);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 30), dim = random.pick({7, 64, 1000, 3000});
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor x = random.tensor(type, {n, dim}, -3, 3);
    const TestTensor least = random.tensor(DType::f32, {dim}, -3, 0);
    const TestTensor most = random.tensor(DType::f32, {dim}, 0, 3);
    const auto run = [&](Backend& backend) {
      TestTensor y = x;
      OnDevice on(backend);
      backend.ops.clamp(
          *backend.stream,
          {.x = on(y.view()), .least = on(least.view()), .most = on(most.view()), .y = on(y.view())});
      on.fetch();
      return y;
    };
    ASSERT_EQ(run(*tested), run(reference)) << dim << " " << name(type);
  }
}

TEST_P(Operators, SoftmaxFillsTheRestWithZeros) {
  TestRandom random(11);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 30), dim = random.pick({1, 7, 64, 1000, 3000});
    const std::int64_t width = dim + random.pick({0, 4, 1100});
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor x = random.tensor(type, {n, dim}, -30, 30);
    const auto run = [&](Backend& backend) {
      TestTensor y = random.tensor(type, {n, width});
      OnDevice on(backend);
      backend.ops.softmax(*backend.stream, {.x = on(x.view()), .y = on(y.view())});
      on.fetch();
      return y;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 5e-6, 1.01 * last_digit(type) + 1e-6), 1)
        << dim << " " << name(type);
  }
}

TEST_P(Operators, AddRows) {
  TestRandom random(8);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 30), dim = random.pick({7, 64, 1000, 3000});
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const DType sum_type = random.coin() ? DType::f32 : type;
    std::vector<std::int32_t> rows(static_cast<std::size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    random.shuffle(rows);
    rows.resize(static_cast<std::size_t>(random.integer(1, static_cast<int>(n))));
    const TestTensor x = random.tensor(type, {std::ssize(rows), dim}), sum = random.tensor(sum_type, {n, dim});
    std::vector<std::int32_t> range{random.integer(0, static_cast<int>(std::ssize(rows))), 7};
    range.push_back(random.integer(range[0], static_cast<int>(std::ssize(rows))));
    const bool some = random.coin();
    const auto run = [&](Backend& backend) {
      TestTensor y = sum;
      OnDevice on(backend);
      backend.ops.add_rows(*backend.stream, {.x = on(x.view()),
                                             .rows = on(View::of(std::span(rows))),
                                             .y = on(y.view()),
                                             .range = some ? on(View::of(std::span(range))) : View{}});
      on.fetch();
      return y;
    };
    ASSERT_EQ(run(*tested), run(reference)) << dim << " " << name(type) << " " << name(sum_type);
  }
}

TEST_P(Operators, PutSampled) {
  TestRandom random(6);
  for (int round = 0; round < 20; ++round) {
    const int n = random.integer(1, 900), r = random.integer(1, 40);
    std::vector<std::int32_t> ids, tokens, sampled, rows;
    for (int i = 0; i < n; ++i) ids.push_back(random.integer(0, 1000));
    for (int i = 0; i < r; ++i) sampled.push_back(random.integer(-1, 1000));
    for (int i = 0; i < n; i += random.integer(1, 3)) {
      tokens.push_back(i);
      rows.push_back(random.integer(0, r - 1));
    }
    std::vector<std::int32_t> expected = ids;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      expected[static_cast<std::size_t>(tokens[i])] = std::max(sampled[static_cast<std::size_t>(rows[i])], 0);
    const auto view = [](std::vector<std::int32_t>& list) { return View::of(std::span(list)); };
    std::vector<std::int32_t> specified = ids;
    reference.ops.put_sampled(*reference.stream, {view(specified), view(tokens), view(sampled), view(rows)});
    EXPECT_EQ(specified, expected);
    OnDevice on(*tested);
    tested->ops.put_sampled(*tested->stream,
                            {on(view(ids)), on(view(tokens)), on(view(sampled)), on(view(rows))});
    on.fetch();
    EXPECT_EQ(ids, expected);
  }
}

TEST(CpuBackend, SaysWhatItCannotDo) {
#if defined(__x86_64__)
  const auto foreign = make_cpu_backend({.threads = 1, .isa = CpuIsa::neon});
#else
  const auto foreign = make_cpu_backend({.threads = 1, .isa = CpuIsa::avx2});
#endif
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().code, ErrorCode::unsupported);
  const auto negative = make_cpu_backend({.threads = -1, .isa = {}});
  ASSERT_FALSE(negative.has_value());
  EXPECT_EQ(negative.error().field, "threads");
  const Backend cpu = make_cpu_backend({.threads = 1, .isa = {}}).value();
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 2, .head_dim = 12}, 4).error().field, "head_dim");
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 2, .head_dim = 1032}, 4).error().field, "head_dim");
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 1, .head_dim = 64, .values_in_keys = 40}, 4).error().field,
            "kv_lora_rank");
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 2, .head_dim = 16, .block_size = 8}, 4).error().field,
            "block_size");
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 2, .head_dim = 16}, 5).error().field, "num_key_value_heads");
  EXPECT_EQ(cpu.ops.supports({.kv_heads = 2, .head_dim = 16, .dtype = DType::i32}, 4).error().field,
            "kv_cache_dtype");
  EXPECT_TRUE(cpu.ops.supports({.kv_heads = 2, .head_dim = 256}, 16).has_value());
}

}  // namespace
}  // namespace octavo
