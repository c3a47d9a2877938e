// Tests attention with keys that are also the values, compressed cache entries, and the residual streams of
// hyper-connections. Every backend is compared with the reference, and with itself for any division of a
// sequence.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

constexpr int kBlockSize = 16;

class RowAttention : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, RowAttention, testing::ValuesIn(test_backends()), test_backend_name);

TestTensor numbers(const std::vector<std::int32_t>& items) {
  TestTensor t(DType::i32, {std::ssize(items)});
  std::copy(items.begin(), items.end(), reinterpret_cast<std::int32_t*>(t.data()));
  return t;
}

// Sizes of one sequence with token rows and compressed entries. The sequence is processed in several steps.
struct Sizes {
  std::int64_t n, dim, index_dim, heads, index_heads, pairs, sets;
  int rate, window, chosen;
  DType dtype;

  explicit Sizes(TestRandom& random)
      : n(random.integer(1, 90)),
        dim(8 * random.integer(3, 12)),
        index_dim(8 * random.integer(2, 6)),
        heads(random.integer(1, 20)),
        index_heads(random.integer(1, 9)),
        pairs(random.integer(1, 8)),
        sets(random.integer(1, 2)),
        rate(random.pick({2, 4, 8, 16})),
        window(random.integer(1, 40)),
        chosen(random.integer(1, 9)),
        dtype(random.pick({DType::f32, DType::bf16, DType::f16})) {}
  KvSpec rows() const {
    return {.kv_heads = 1,
            .head_dim = int(dim),
            .block_size = kBlockSize,
            .dtype = dtype,
            .values_in_keys = int(dim)};
  }
  KvSpec entries() const {
    return {.kv_heads = 1,
            .head_dim = int(dim + index_dim),
            .block_size = kBlockSize,
            .dtype = dtype,
            .values_in_keys = int(dim),
            .index_dim = int(index_dim),
            .rate = rate};
  }
};

struct Inputs {
  TestTensor q, index_q, weights, kv, values, gates, index_values, index_gates, bias, index_bias, norm,
      index_norm, sinks, frequencies;
  Inputs(const Sizes& s, TestRandom& random)
      : q(random.tensor(s.dtype, {s.n, s.heads, s.dim})),
        index_q(random.tensor(s.dtype, {s.n, s.index_heads, s.index_dim})),
        weights(random.tensor(DType::f32, {s.n, s.index_heads})),
        kv(random.tensor(DType::f32, {s.n, s.dim})),
        values(random.tensor(DType::f32, {s.n, s.sets * s.dim})),
        gates(random.tensor(DType::f32, {s.n, s.sets * s.dim}, -5, 5)),
        index_values(random.tensor(DType::f32, {s.n, s.sets * s.index_dim})),
        index_gates(random.tensor(DType::f32, {s.n, s.sets * s.index_dim}, -5, 5)),
        bias(random.tensor(DType::f32, {s.rate, s.sets * s.dim})),
        index_bias(random.tensor(DType::f32, {s.rate, s.sets * s.index_dim})),
        norm(random.tensor(DType::f32, {s.dim})),
        index_norm(random.tensor(DType::f32, {s.index_dim})),
        sinks(random.tensor(DType::f32, {s.heads})),
        frequencies(random.tensor(DType::f32, {s.pairs}, 0, 1)) {}
};

struct Outputs {
  TestTensor out, chosen;
};

Outputs run(Backend& backend, const Sizes& s, const Inputs& in, std::int64_t at_once, bool chooses) {
  const std::int64_t blocks = (s.n + kBlockSize - 1) / kBlockSize;
  const auto cache_of = [&](const KvSpec& spec, Buffer& memory) {
    const std::int64_t bytes = backend.ops.kv_block_bytes(spec);
    memory = backend.device->allocate(static_cast<std::size_t>(blocks * bytes)).value();
    const std::vector<std::byte> old(memory.bytes(), std::byte{0xff});
    backend.device->upload(*backend.stream, memory.view(DType::u8, {std::ssize(old)}), old.data());
    backend.stream->synchronize();
    return KvLayer{static_cast<std::byte*>(memory.data()), blocks, bytes, spec};
  };
  Buffer row_memory, entry_memory;
  const KvLayer rows = cache_of(s.rows(), row_memory), entries = cache_of(s.entries(), entry_memory);
  const auto plan_of = [&](const KvSpec& spec) {
    return backend.ops
        .make_attention_plan(*backend.device, {.max_tokens = int(s.n),
                                               .max_sequences = 1,
                                               .max_length = int(s.n),
                                               .q_heads = int(s.heads),
                                               .kv = spec})
        .value();
  };
  const auto plan = plan_of(s.rows()), entry_plan = plan_of(s.entries());
  TestTensor state(DType::f32, {2, s.sets, 3, s.dim}), index_state(DType::f32, {2, s.sets, 3, s.index_dim});
  // A new sequence must ignore the old contents of the slot.
  for (std::int64_t i = 0; i < state.elements(); ++i) state.set(i, NAN);
  for (std::int64_t i = 0; i < index_state.elements(); ++i) index_state.set(i, NAN);
  TestTensor q = in.q, index_q = in.index_q;
  Outputs result{TestTensor(s.dtype, {s.n, s.heads * s.dim}), TestTensor(DType::i32, {s.n, s.chosen})};
  std::vector<std::int32_t> table;
  for (std::int64_t i = 0; i < blocks; ++i) table.push_back(static_cast<std::int32_t>(blocks - 1 - i));
  for (std::int64_t first = 0; first < s.n; first += at_once) {
    const std::int64_t count = std::min(at_once, s.n - first);
    std::vector<std::int32_t> token_positions;
    TestTensor slots(DType::i64, {count});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t t = first + i;
      token_positions.push_back(static_cast<std::int32_t>(t));
      reinterpret_cast<std::int64_t*>(slots.data())[i] =
          table[static_cast<std::size_t>(t / kBlockSize)] * std::int64_t{kBlockSize} + t % kBlockSize;
    }
    const TestTensor positions = numbers(token_positions), state_slots = numbers({1}),
                     starts = numbers({0, static_cast<std::int32_t>(count)});
    const std::int32_t query_starts[] = {0, static_cast<std::int32_t>(count)},
                       length = static_cast<std::int32_t>(first + count);
    for (AttentionPlan* each : {plan.get(), entry_plan.get()})
      backend.ops.plan_attention(*backend.stream,
                                 {.query_starts = query_starts,
                                  .lengths = {&length, 1},
                                  .block_tables = table,
                                  .table_stride = blocks},
                                 *each);
    OnDevice on(backend);
    const auto step = [&](const TestTensor& all) { return on(all.view().rows(first, count)); };
    const StatePlan states{
        .slots = on(state_slots.view()), .starts = on(starts.view()), .positions = on(positions.view())};
    const View frequencies = on(in.frequencies.view()).rows(0, std::min(s.pairs, s.index_dim / 2));
    Stream& stream = *backend.stream;
    const auto store = [&](const View& x, const TestTensor& norm, const KvLayer& cache, std::int64_t number) {
      backend.ops.store_rows(stream,
                             {.x = x,
                              .norm = {.kind = NormKind::rms, .eps = 1e-5F, .weight = on(norm.view())},
                              .positions = states.positions,
                              .frequencies = frequencies,
                              .slots = on(slots.view()),
                              .cache = cache,
                              .first = number});
    };
    const TestTensor means(DType::f32, {count, s.dim}), index_means(DType::f32, {count, s.index_dim});
    const auto compress = [&](const TestTensor& values, const TestTensor& gates, const TestTensor& bias,
                              const TestTensor& state_of, const TestTensor& to) {
      backend.ops.compress(stream, {.values = step(values),
                                    .gates = step(gates),
                                    .bias = on(bias.view()),
                                    .state = on(state_of.view()),
                                    .plan = states,
                                    .means = on(to.view())});
      return on(to.view());
    };
    store(step(in.kv), in.norm, rows, 0);
    store(compress(in.values, in.gates, in.bias, state, means), in.norm, entries, 0);
    store(compress(in.index_values, in.index_gates, in.index_bias, index_state, index_means), in.index_norm,
          entries, s.dim);
    for (const TestTensor* each : {&q, &index_q})
      backend.ops.rotate_ends(stream,
                              {.x = step(*each), .positions = states.positions, .frequencies = frequencies});
    const View chosen = step(result.chosen), out = step(result.out);
    backend.ops.choose_tokens(stream, {.q = step(index_q),
                                       .weights = step(in.weights),
                                       .cache = entries,
                                       .plan = *entry_plan,
                                       .chosen = chosen});
    backend.ops.attention(stream, {.q = step(q),
                                   .cache = rows,
                                   .plan = *plan,
                                   .scale = 0.3F,
                                   .window = s.window,
                                   .sinks = on(in.sinks.view()),
                                   .chosen = chooses ? chosen : View{},
                                   .entries = entries,
                                   .entry_plan = entry_plan.get(),
                                   .out = out});
    backend.ops.rotate_ends(stream, {.x = View::of(out.data, out.dtype, {count, s.heads, s.dim}),
                                     .positions = states.positions,
                                     .frequencies = frequencies,
                                     .back = true});
    on.fetch();
  }
  return result;
}

TEST_P(RowAttention, IsThatOfTheReferenceHoweverASequenceIsCut) {
  TestRandom random(3);
  for (int round = 0; round < (GetParam().slow ? 6 : 25); ++round) {
    const Sizes s(random);
    const Inputs in(s, random);
    const bool chooses = random.coin();
    const Outputs together = run(*tested, s, in, s.n, chooses),
                  expected = run(reference, s, in, s.n, chooses);
    const auto context = [&] {
      return fmt::format("{} tokens, rate {}, sets {}, {}", s.n, s.rate, s.sets, name(s.dtype));
    };
    ASSERT_TRUE(s.dtype != DType::f32 || together.chosen == expected.chosen) << context();
    if (together.chosen == expected.chosen) {  // rounding of entries may change the selection of entries
      ASSERT_LE(
          difference(together.out, expected.out, s.dtype == DType::f32 ? 2e-5 : 0.02, last_digit(s.dtype)), 1)
          << context();
    }
    for (const std::int64_t at_once : {1, 7}) {
      const Outputs cut = run(*tested, s, in, at_once, chooses);
      ASSERT_TRUE(cut.chosen == together.chosen) << context();
      ASSERT_TRUE(cut.out == together.out) << context();
    }
  }
}

TEST_P(RowAttention, StatesAreCopiedBehindTokens) {
  TestRandom random(5);
  for (int round = 0; round < 10; ++round) {
    const std::int64_t n = random.integer(2, 20), dim = random.integer(1, 100), sets = random.integer(1, 2);
    const TestTensor values = random.tensor(DType::f32, {n, sets * dim}),
                     gates = random.tensor(DType::f32, {n, sets * dim});
    const TestTensor bias = random.tensor(DType::f32, {4, sets * dim});
    std::vector<std::int32_t> token_positions(static_cast<std::size_t>(n)), to(token_positions.size(), -1);
    std::iota(token_positions.begin(), token_positions.end(), 0);
    to[static_cast<std::size_t>(random.integer(0, static_cast<int>(n) - 1))] = 2;
    const TestTensor positions = numbers(token_positions), copies = numbers(to), slots = numbers({0}),
                     starts = numbers({0, static_cast<std::int32_t>(n)});
    const auto run = [&](Backend& backend) {
      std::pair result{TestTensor(DType::f32, {3, sets, 3, dim}), TestTensor(DType::f32, {n, dim})};
      OnDevice on(backend);
      const StatePlan plan{on(slots.view()), on(starts.view()), on(positions.view()), on(copies.view())};
      backend.ops.compress(*backend.stream, {.values = on(values.view()),
                                             .gates = on(gates.view()),
                                             .bias = on(bias.view()),
                                             .state = on(result.first.view()),
                                             .plan = plan,
                                             .means = on(result.second.view())});
      on.fetch();
      return result;
    };
    const auto got = run(*tested), expected = run(reference);
    ASSERT_LE(difference(got.first, expected.first, 1e-5, 1e-5), 1);
    ASSERT_LE(difference(got.second, expected.second, 1e-5, 1e-5), 1);
  }
}

TEST_P(RowAttention, HyperConnections) {
  TestRandom random(7);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t n = random.integer(1, 7), streams = random.integer(1, kMaxStreams),
                       dim = random.integer(1, 300);
    const bool posts = random.coin(), mixes = posts && random.coin();
    const std::int64_t rows = streams * (mixes ? 2 + streams : posts ? 2 : 1);
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor x = random.tensor(DType::f32, {n, streams, dim}, -2, 2),
                     delta = random.tensor(type, {n, dim});
    const TestTensor matrix = random.tensor(DType::f32, {rows, streams * dim}, -0.2F, 0.2F),
                     base = random.tensor(DType::f32, {rows}),
                     scale = random.tensor(DType::f32, {mixes ? 3 : posts ? 2 : 1}, 0.2F, 2);
    const auto run = [&](Backend& backend) {
      std::pair result{x, TestTensor(DType::f32, {n, dim})};
      TestTensor post(DType::f32, {n, streams}), mix(DType::f32, {n, streams * streams});
      OnDevice on(backend);
      backend.ops.collapse_streams(*backend.stream, {.x = on(x.view()),
                                                     .matrix = on(matrix.view()),
                                                     .base = on(base.view()),
                                                     .scale = on(scale.view()),
                                                     .norm_eps = 1e-6F,
                                                     .eps = 1e-4F,
                                                     .iterations = 5,
                                                     .post_scale = 1.5F,
                                                     .post_eps = 0.01F,
                                                     .out = on(result.second.view()),
                                                     .post = posts ? on(post.view()) : View{},
                                                     .mix = mixes ? on(mix.view()) : View{}});
      if (posts)
        backend.ops.expand_streams(*backend.stream, {.x = on(result.first.view()),
                                                     .delta = on(delta.view()),
                                                     .post = on(post.view()),
                                                     .mix = mixes ? on(mix.view()) : View{}});
      on.fetch();
      return result;
    };
    const auto got = run(*tested), expected = run(reference);
    ASSERT_LE(difference(got.first, expected.first, 3e-5, 3e-5), 1) << streams << " x " << dim;
    ASSERT_LE(difference(got.second, expected.second, 3e-5, 3e-5), 1) << streams << " x " << dim;
  }
}

}  // namespace
}  // namespace octavo
