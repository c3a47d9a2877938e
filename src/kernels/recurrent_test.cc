// Compares gates, causal convolutions and the gated delta rule with the reference, for each CPU
// instruction set and for CUDA. The bits of a result must not depend on how its sequence is divided, or on
// other sequences in the batch.
#include <gtest/gtest.h>

#include "kernels/testing/pieces.h"

namespace octavo {
namespace {

class Recurrent : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Recurrent, testing::ValuesIn(test_backends()), test_backend_name);

TEST_P(Recurrent, Gate) {
  TestRandom random(1);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t n = random.integer(1, 20), heads = random.integer(1, 5);
    const bool normed = random.coin(), own_weights = random.coin(), gate_first = random.coin();
    const std::int64_t dim = random.integer(1, random.coin() ? 300 : 2500);
    const float scale = random.coin() ? 1.0f : 0.4f;
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor both = random.tensor(type, {n, 2 * heads * dim}, -4, 4);
    const TestTensor weight =
        own_weights ? random.tensor(DType::f32, {heads, dim}) : random.tensor(DType::f32, {dim});
    const Activation kind = random.pick({Activation::sigmoid, Activation::silu, Activation::softplus});
    const auto run = [&](Backend& backend) {
      TestTensor y(type, {n, heads * dim});
      OnDevice on(backend);
      const View x = on(both.view());
      backend.ops.gate(*backend.stream,
                       {.x = x.columns(0, heads * dim),
                        .gate = x.columns(heads * dim, heads * dim),
                        .norm = normed ? Norm{NormKind::rms, 1e-6f, on(weight.view()), {}} : Norm{},
                        .gate_first = gate_first,
                        .activation = kind,
                        .gate_scale = scale,
                        .y = on(y.view())});
      on.fetch();
      return y;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 1e-5, 1.01 * last_digit(type) + 1e-6), 1);
  }
}

// A layer that consists of a convolution and the delta rule.
struct Layer {
  std::int64_t key_heads, value_heads, key_dim, value_dim, width;
  bool tiled;          // as in GatedDeltaArgs
  std::int64_t rates;  // number of decays: one per head, or one per row of a head's state
  float beta_scale;
  float least_log;
  DType type;
  TestTensor weight, a_log, dt_bias;

  Layer(TestRandom& random, DType t)
      : key_heads(random.integer(1, 3)),
        value_heads(key_heads * random.integer(1, 2)),
        key_dim(random.integer(1, 70)),
        value_dim(random.integer(1, 90)),
        width(random.integer(2, 4)),
        tiled(random.coin()),
        rates(value_heads * (random.coin() ? key_dim : 1)),
        beta_scale(random.pick({1.0F, 2.0F})),
        least_log(random.pick({0.0F, -5.0F})),
        type(t),
        weight(random.tensor(DType::f32, {channels(), width})),
        a_log(random.tensor(DType::f32, {value_heads}, -3, 2)),
        dt_bias(random.tensor(DType::f32, {rates}, -1, 1)) {}
  std::int64_t gates() const { return value_heads + rates; }
  std::int64_t channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
};

class Session {
 public:
  Session(Backend& backend, const Layer& layer, std::int64_t slots)
      : backend_(backend),
        layer_(layer),
        conv_(DType::f32, {slots, layer.width - 1, layer.channels()}),
        state_(DType::f32, {slots, layer.value_heads, layer.key_dim, layer.value_dim}) {
    for (TestTensor* t : {&conv_, &state_})
      for (std::int64_t i = 0; i < t->elements(); ++i)
        t->set(i, NAN);  // a new sequence must ignore the old contents of the slot
  }

  // x and ba have the tokens of all sequences; the row of a token is [slot * stride + position]. `copies`
  // is StatePlan::copies.
  TestTensor step(const TestTensor& x, const TestTensor& ba, std::int64_t stride,
                  const std::vector<Piece>& pieces, std::vector<std::int32_t> copies = {}) {
    PlanArrays arrays(pieces, std::move(copies));
    const std::int64_t n = std::ssize(arrays.positions), channels = layer_.channels();
    const TestTensor in = rows_of(x, channels, stride, pieces),
                     gates = rows_of(ba, layer_.gates(), stride, pieces);
    TestTensor mixed(layer_.type, {n, channels}),
        out(layer_.type, {n, layer_.value_heads * layer_.value_dim});
    OnDevice on(backend_);
    const StatePlan plan = arrays.plan(on);
    backend_.ops.causal_conv(*backend_.stream, {.x = on(in.view()),
                                                .weight = on(layer_.weight.view()),
                                                .state = on(conv_.view()),
                                                .plan = plan,
                                                .y = on(mixed.view())});
    backend_.ops.gated_delta(*backend_.stream, {.qkv = on(mixed.view()),
                                                .key_heads = static_cast<int>(layer_.key_heads),
                                                .tiled = layer_.tiled,
                                                .ba = on(gates.view()),
                                                .a_log = on(layer_.a_log.view()),
                                                .dt_bias = on(layer_.dt_bias.view()),
                                                .beta_scale = layer_.beta_scale,
                                                .least_log = layer_.least_log,
                                                .state = on(state_.view()),
                                                .plan = plan,
                                                .out = on(out.view())});
    on.fetch();
    return out;
  }

 private:
  Backend& backend_;
  const Layer& layer_;
  TestTensor conv_, state_;
};

TEST_P(Recurrent, StatesGoOnAsTheSpecificationSays) {
  TestRandom random(2);
  for (int round = 0; round < (GetParam().slow ? 4 : 12); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const std::int64_t length = random.integer(1, 30);
    const TestTensor x = random.tensor(layer.type, {2 * length, layer.channels()}, -2, 2);
    const TestTensor ba = random.tensor(DType::f32, {2 * length, layer.gates()}, -3, 3);
    const std::vector<Piece> all{{1, 0, length}, {0, 0, length}};
    const TestTensor got = Session(*tested, layer, 2).step(x, ba, length, all);
    const TestTensor expected = Session(reference, layer, 2).step(x, ba, length, all);
    // The input of the delta rule is rounded to bf16 after the convolution, so it may differ by one unit in
    // the last place.
    ASSERT_LE(difference(got, expected, layer.type == DType::bf16 ? 3e-2 : 2e-5, 3 * last_digit(layer.type)),
              1)
        << layer.key_dim << " x " << layer.value_dim << ", " << name(layer.type);
  }
}

TEST_P(Recurrent, AnyCutAndAnyCompanyGiveTheSameBits) {
  TestRandom random(3);
  Backend alone = GetParam().make(1).value();
  for (int round = 0; round < (GetParam().slow ? 3 : 10); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const std::int64_t length = random.integer(8, 40), columns = layer.value_heads * layer.value_dim;
    const TestTensor x = random.tensor(layer.type, {3 * length, layer.channels()}, -2, 2);
    const TestTensor ba = random.tensor(DType::f32, {3 * length, layer.gates()}, -3, 3);
    TestTensor expected(layer.type, {3 * length, columns});
    for (std::int32_t s = 0; s < 3; ++s) {
      const TestTensor out = Session(alone, layer, 3).step(x, ba, length, {{s, 0, length}});
      for (std::int64_t i = 0; i < length * columns; ++i) expected.set(s * length * columns + i, out[i]);
    }
    TestTensor got(layer.type, {3 * length, columns});
    Session session(*tested, layer, 3);
    in_random_pieces(random, length, [&](const std::vector<Piece>& pieces) {
      put_rows(session.step(x, ba, length, pieces), columns, length, pieces, got);
    });
    ASSERT_EQ(got, expected) << layer.key_dim << " x " << layer.value_dim << ", " << name(layer.type);
  }
}

TEST_P(Recurrent, SequencesGoOnFromCopiesOfTheirStates) {
  TestRandom random(4);
  for (int round = 0; round < (GetParam().slow ? 3 : 10); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const int length = random.integer(2, 20), cut = random.integer(1, length - 1);
    const std::int64_t columns = layer.value_heads * layer.value_dim;
    const TestTensor x = random.tensor(layer.type, {length, layer.channels()}, -2, 2);
    const TestTensor ba = random.tensor(DType::f32, {length, layer.gates()}, -3, 3);
    Session session(*tested, layer, 2);
    std::vector<std::int32_t> copies(static_cast<std::size_t>(length), -1);
    copies[static_cast<std::size_t>(cut) - 1] = 1;
    const TestTensor all = session.step(x, ba, length, {{0, 0, length}}, copies);
    const TestTensor rest = session.step(x, ba, 0, {{1, cut, length}});
    for (std::int64_t i = cut * columns; i < length * columns; ++i)
      ASSERT_EQ(rest[i - cut * columns], all[i]) << name(layer.type) << ", token " << i / columns;
  }
}

}  // namespace
}  // namespace octavo
