// Compares convolutions with gates and biases, and the scans of Mamba and Mamba2, with the reference, for
// each CPU instruction set of this machine and for CUDA. Results must have the same bits for any division
// of a sequence.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/testing/pieces.h"

namespace octavo {
namespace {

class Scans : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Scans, testing::ValuesIn(test_backends()), test_backend_name);

// An operator with a state. One row has all inputs of a token.
struct Operator {
  DType type;
  std::int64_t inputs, outputs;
  TestTensor state;  // [slots, ...]
  std::function<void(Backend&, OnDevice&, const View& in, const View& state, const StatePlan&,
                     const View& out)>
      run;
};

Operator random_conv(TestRandom& random, std::int64_t slots) {
  const std::int64_t channels = random.integer(1, 600), width = random.integer(2, 5);
  const bool x_gate = random.coin(), y_gate = random.coin(), bias = random.coin(), silu = random.coin();
  const DType type = random.pick({DType::f32, DType::bf16});
  const TestTensor weight = random.tensor(DType::f32, {channels, width});
  const TestTensor shift = random.tensor(DType::f32, {channels});
  return {type, 3 * channels, channels, TestTensor(DType::f32, {slots, width - 1, channels}),
          [=](Backend& backend, OnDevice& on, const View& in, const View& state, const StatePlan& plan,
              const View& out) {
            backend.ops.causal_conv(*backend.stream,
                                    {.x = in.columns(0, channels),
                                     .x_gate = x_gate ? in.columns(channels, channels) : View{},
                                     .weight = on(weight.view()),
                                     .bias = bias ? on(shift.view()) : View{},
                                     .silu = silu,
                                     .y_gate = y_gate ? in.columns(2 * channels, channels) : View{},
                                     .state = state,
                                     .plan = plan,
                                     .y = out});
          }};
}

Operator random_scan(TestRandom& random, std::int64_t slots) {
  const std::int64_t groups = random.integer(1, 3), heads = groups * random.integer(1, 3);
  const std::int64_t head_dim = random.integer(1, 90), state_dim = random.integer(1, 70);
  const DType type = random.pick({DType::f32, DType::bf16});
  const bool limited = random.coin(), steps = random.coin();
  const TestTensor a_log = random.tensor(DType::f32, {heads}, -3, 2), d = random.tensor(DType::f32, {heads});
  const TestTensor bias = random.tensor(DType::f32, {heads}, -1, 1);
  const std::int64_t inner = heads * head_dim, channels = inner + 2 * groups * state_dim;
  return {type, channels + heads, inner, TestTensor(DType::f32, {slots, heads, state_dim, head_dim}),
          [=](Backend& backend, OnDevice& on, const View& in, const View& state, const StatePlan& plan,
              const View& out) {
            TimeStep step{.scale = 0.8f, .bias = on(bias.view())};
            if (limited) step.least = 0.3f, step.most = 1.2f;
            backend.ops.scan(*backend.stream, {.xbc = in.columns(0, channels),
                                               .groups = static_cast<int>(groups),
                                               .dt = steps ? in.columns(channels, heads) : View{},
                                               .time_step = steps ? step : TimeStep{},
                                               .a_log = on(a_log.view()),
                                               .d = on(d.view()),
                                               .state = state,
                                               .plan = plan,
                                               .out = out});
          }};
}

Operator random_channel_scan(TestRandom& random, std::int64_t slots) {
  const std::int64_t channels = random.integer(1, 200), numbers = random.integer(1, 40);
  const DType type = random.pick({DType::f32, DType::bf16});
  const TestTensor a_log = random.tensor(DType::f32, {channels, numbers}, -3, 2);
  const TestTensor bias = random.tensor(DType::f32, {channels}, -1, 1),
                   d = random.tensor(DType::f32, {channels});
  return {type, 2 * channels + 2 * numbers, channels, TestTensor(DType::f32, {slots, numbers, channels}),
          [=](Backend& backend, OnDevice& on, const View& in, const View& state, const StatePlan& plan,
              const View& out) {
            backend.ops.channel_scan(*backend.stream, {.x = in.columns(0, channels),
                                                       .bc = in.columns(2 * channels, 2 * numbers),
                                                       .dt = in.columns(channels, channels),
                                                       .time_step = {.bias = on(bias.view())},
                                                       .a_log = on(a_log.view()),
                                                       .d = on(d.view()),
                                                       .state = state,
                                                       .plan = plan,
                                                       .out = out});
          }};
}

constexpr auto kKinds = {random_conv, random_scan, random_channel_scan};

// Sequences of `length` tokens, one per slot. `x` is [slots * length, inputs].
class Session {
 public:
  Session(Backend& backend, const Operator& op, std::int64_t length)
      : backend_(backend), op_(op), length_(length), state_(op.state) {
    // The first token of a sequence must ignore the old contents of the slot.
    for (std::int64_t i = 0; i < state_.elements(); ++i) state_.set(i, NAN);
  }

  // Computes the pieces and writes their rows to `out` [slots * length, outputs]. `copies` is
  // StatePlan::copies.
  void step(const TestTensor& x, const std::vector<Piece>& pieces, TestTensor& out,
            std::vector<std::int32_t> copies = {}) {
    PlanArrays arrays(pieces, std::move(copies));
    const TestTensor in = rows_of(x, op_.inputs, length_, pieces);
    TestTensor rows(op_.type, {std::ssize(arrays.positions), op_.outputs});
    OnDevice on(backend_);
    const StatePlan plan = arrays.plan(on);
    op_.run(backend_, on, on(in.view()), on(state_.view()), plan, on(rows.view()));
    on.fetch();
    put_rows(rows, op_.outputs, length_, pieces, out);
  }

 private:
  Backend& backend_;
  const Operator& op_;
  std::int64_t length_;
  TestTensor state_;
};

TEST_P(Scans, StatesGoOnAsTheSpecificationSays) {
  TestRandom random(1);
  for (const auto make : kKinds)
    for (int round = 0; round < (GetParam().slow ? 3 : 10); ++round) {
      const Operator op = make(random, 2);
      const std::int64_t length = random.integer(1, 30);
      const TestTensor x = random.tensor(op.type, {2 * length, op.inputs}, -2, 2);
      const std::vector<Piece> all{{1, 0, length}, {0, 0, length}};
      TestTensor got(op.type, {2 * length, op.outputs}), expected = got;
      Session(*tested, op, length).step(x, all, got);
      Session(reference, op, length).step(x, all, expected);
      ASSERT_LE(difference(got, expected, 2e-5, 1.01 * last_digit(op.type) + 1e-5), 1) << name(op.type);
    }
}

TEST_P(Scans, AnyCutAndAnyCompanyGiveTheSameBits) {
  TestRandom random(2);
  Backend alone = GetParam().make(1).value();
  for (const auto make : kKinds)
    for (int round = 0; round < (GetParam().slow ? 2 : 6); ++round) {
      const Operator op = make(random, 3);
      const std::int64_t length = random.integer(8, 40);
      const TestTensor x = random.tensor(op.type, {3 * length, op.inputs}, -2, 2);
      TestTensor expected(op.type, {3 * length, op.outputs}), got = expected;
      for (std::int32_t s = 0; s < 3; ++s) Session(alone, op, length).step(x, {{s, 0, length}}, expected);
      Session session(*tested, op, length);
      in_random_pieces(random, length,
                       [&](const std::vector<Piece>& pieces) { session.step(x, pieces, got); });
      ASSERT_EQ(got, expected) << name(op.type);
    }
}

TEST_P(Scans, SequencesGoOnFromCopiesOfTheirStates) {
  TestRandom random(3);
  for (const auto make : kKinds)
    for (int round = 0; round < (GetParam().slow ? 2 : 6); ++round) {
      const Operator op = make(random, 2);
      const int length = random.integer(2, 20), cut = random.integer(1, length - 1);
      TestTensor x = random.tensor(op.type, {2 * length, op.inputs}, -2, 2);
      for (std::int64_t i = 0; i < length * op.inputs; ++i) x.set(length * op.inputs + i, x[i]);
      TestTensor got(op.type, {2 * length, op.outputs});
      Session session(*tested, op, length);
      std::vector<std::int32_t> copies(static_cast<std::size_t>(length), -1);
      copies[static_cast<std::size_t>(cut) - 1] = 1;
      session.step(x, {{0, 0, length}}, got, copies);
      session.step(x, {{1, cut, length}}, got);
      for (std::int64_t i = cut * op.outputs; i < length * op.outputs; ++i)
        ASSERT_EQ(got[length * op.outputs + i], got[i]) << name(op.type) << ", token " << i / op.outputs;
    }
}

}  // namespace
}  // namespace octavo
