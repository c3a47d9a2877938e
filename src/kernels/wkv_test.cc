// Compares mixtures of neighbouring tokens and the delta rule of RWKV-7 with the reference, on every
// backend. The bits of a result must not depend on how its sequence is divided, or on other sequences in
// the batch.
#include <gtest/gtest.h>

#include "kernels/testing/pieces.h"

namespace octavo {
namespace {

class Wkv : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Wkv, testing::ValuesIn(test_backends()), test_backend_name);

// A layer whose r, k and v are three mixtures of x. The test provides the other inputs.
struct Layer {
  std::int64_t heads, dim;
  bool shares_values;
  DType type;
  TestTensor mixtures, vectors;  // vectors: k_k, k_a, r_k, and the norm's weight and bias

  Layer(TestRandom& random, DType t)
      : heads(random.integer(1, 3)),
        dim(random.integer(1, 90)),
        shares_values(random.coin()),
        type(t),
        mixtures(random.tensor(DType::f32, {3 * inner(), 2})),
        vectors(random.tensor(DType::f32, {5, inner()}, -1, 1.5)) {}
  std::int64_t inner() const { return heads * dim; }
  // total width of the provided inputs: x, rate, gate, mix, first
  std::int64_t given() const { return 5 * inner(); }
};

class Session {
 public:
  Session(Backend& backend, const Layer& layer, std::int64_t slots)
      : backend_(backend),
        layer_(layer),
        last_(DType::f32, {slots, 1, layer.inner()}),
        state_(DType::f32, {slots, layer.heads, layer.dim, layer.dim}) {
    for (TestTensor* t : {&last_, &state_})
      for (std::int64_t i = 0; i < t->elements(); ++i)
        t->set(i, NAN);  // a new sequence must ignore the old contents of the slot
  }

  // `given` and `decay` have the tokens of all sequences; the row of a token is [slot * stride + position].
  // `copies` is StatePlan::copies.
  TestTensor step(const TestTensor& given, const TestTensor& decay, std::int64_t stride,
                  const std::vector<Piece>& pieces, std::vector<std::int32_t> copies = {}) {
    PlanArrays arrays(pieces, std::move(copies));
    const std::int64_t inner = layer_.inner();
    const TestTensor in = rows_of(given, layer_.given(), stride, pieces);
    const std::int64_t n = std::ssize(arrays.positions);
    const TestTensor decays = rows_of(decay, inner, stride, pieces);
    TestTensor mixed(layer_.type, {n, 3 * inner}), out(layer_.type, {n, inner});
    OnDevice on(backend_);
    const StatePlan plan = arrays.plan(on);
    const View all = on(in.view()), mixtures = on(mixed.view()), vectors = on(layer_.vectors.view());
    const auto part = [&](std::int64_t i) { return all.columns(i * inner, inner); };
    const auto vector = [&](std::int64_t i) {
      return View::of(vectors.as<float>() + i * inner, DType::f32, {inner});
    };
    backend_.ops.causal_conv(*backend_.stream, {.x = part(0),
                                                .weight = on(layer_.mixtures.view()),
                                                .silu = false,
                                                .state = on(last_.view()),
                                                .plan = plan,
                                                .y = mixtures});
    backend_.ops.wkv(*backend_.stream, {.r = mixtures.columns(0, inner),
                                        .k = mixtures.columns(inner, inner),
                                        .v = mixtures.columns(2 * inner, inner),
                                        .decay = on(decays.view()),
                                        .rate = part(1),
                                        .gate = part(2),
                                        .mix = layer_.shares_values ? part(3) : View(),
                                        .first = layer_.shares_values ? part(4) : View(),
                                        .k_k = vector(0),
                                        .k_a = vector(1),
                                        .r_k = vector(2),
                                        .eps = 1e-6F,
                                        .norm = {NormKind::layer, 1e-3F, vector(3), vector(4)},
                                        .state = on(state_.view()),
                                        .plan = plan,
                                        .out = on(out.view())});
    on.fetch();
    return out;
  }

 private:
  Backend& backend_;
  const Layer& layer_;
  TestTensor last_, state_;
};

TEST_P(Wkv, StatesGoOnAsTheSpecificationSays) {
  TestRandom random(11);
  for (int round = 0; round < (GetParam().slow ? 4 : 12); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const std::int64_t length = random.integer(1, 30);
    const TestTensor given = random.tensor(layer.type, {2 * length, layer.given()}, -2, 2);
    const TestTensor decay = random.tensor(DType::f32, {2 * length, layer.inner()}, -6, 2);
    const std::vector<Piece> all{{1, 0, length}, {0, 0, length}};
    const TestTensor got = Session(*tested, layer, 2).step(given, decay, length, all);
    const TestTensor expected = Session(reference, layer, 2).step(given, decay, length, all);
    // The input of the delta rule is rounded to bf16 after the mixtures, so it may differ by one unit in
    // the last place.
    ASSERT_LE(difference(got, expected, layer.type == DType::bf16 ? 1e-1 : 1e-4, 4 * last_digit(layer.type)),
              1)
        << layer.heads << " heads of " << layer.dim << ", " << name(layer.type);
  }
}

TEST_P(Wkv, AnyCutAndAnyCompanyGiveTheSameBits) {
  TestRandom random(12);
  Backend alone = GetParam().make(1).value();
  for (int round = 0; round < (GetParam().slow ? 3 : 10); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const std::int64_t length = random.integer(8, 40), inner = layer.inner();
    const TestTensor given = random.tensor(layer.type, {3 * length, layer.given()}, -2, 2);
    const TestTensor decay = random.tensor(DType::f32, {3 * length, inner}, -6, 2);
    TestTensor expected(layer.type, {3 * length, inner}), got(layer.type, {3 * length, inner});
    for (std::int32_t s = 0; s < 3; ++s) {
      const TestTensor out = Session(alone, layer, 3).step(given, decay, length, {{s, 0, length}});
      for (std::int64_t i = 0; i < length * inner; ++i) expected.set(s * length * inner + i, out[i]);
    }
    Session session(*tested, layer, 3);
    in_random_pieces(random, length, [&](const std::vector<Piece>& pieces) {
      put_rows(session.step(given, decay, length, pieces), inner, length, pieces, got);
    });
    ASSERT_EQ(got, expected) << layer.heads << " heads of " << layer.dim << ", " << name(layer.type);
  }
}

TEST_P(Wkv, SequencesGoOnFromCopiesOfTheirStates) {
  TestRandom random(13);
  for (int round = 0; round < (GetParam().slow ? 3 : 10); ++round) {
    const Layer layer(random, random.pick({DType::f32, DType::bf16}));
    const int length = random.integer(2, 20), cut = random.integer(1, length - 1);
    const std::int64_t inner = layer.inner();
    const TestTensor given = random.tensor(layer.type, {length, layer.given()}, -2, 2);
    const TestTensor decay = random.tensor(DType::f32, {length, inner}, -6, 2);
    Session session(*tested, layer, 2);
    std::vector<std::int32_t> copies(static_cast<std::size_t>(length), -1);
    copies[static_cast<std::size_t>(cut) - 1] = 1;
    const TestTensor all = session.step(given, decay, length, {{0, 0, length}}, copies);
    const TestTensor rest = session.step(given, decay, 0, {{1, cut, length}});
    for (std::int64_t i = cut * inner; i < length * inner; ++i)
      ASSERT_EQ(rest[i - cut * inner], all[i]) << name(layer.type) << ", token " << i / inner;
  }
}

}  // namespace
}  // namespace octavo
