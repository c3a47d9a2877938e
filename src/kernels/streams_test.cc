// Compares operators on residual streams, and KeepTailArgs, with the reference: on the CPU with every
// instruction set of this processor, and on CUDA.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

class Streams : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, Streams, testing::ValuesIn(test_backends()), test_backend_name);

struct Sizes {
  std::int64_t n, streams, dim;
  explicit Sizes(TestRandom& random)
      : n(random.integer(1, 7)),
        streams(random.integer(1, kMaxStreams)),
        dim(random.integer(1, random.coin() ? 40 : 700)) {}
};

TEST_P(Streams, Predict) {
  TestRandom random(1);
  for (int round = 0; round < 20; ++round) {
    const Sizes s(random);
    const TestTensor x = random.tensor(DType::f32, {s.n, s.streams, s.dim}, -2, 2);
    const TestTensor router = random.tensor(DType::f32, {s.n, s.streams}, -2, 2);
    const TestTensor coefs = random.tensor(DType::f32, {s.streams * s.streams, s.streams});
    const auto run = [&](Backend& backend) {
      TestTensor mixed = x;
      OnDevice on(backend);
      backend.ops.predict_streams(
          *backend.stream, {.x = on(mixed.view()), .router = on(router.view()), .coefs = on(coefs.view())});
      on.fetch();
      return mixed;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 2e-5, 1e-5), 1) << s.streams << " x " << s.dim;
  }
}

TEST_P(Streams, Correct) {
  TestRandom random(2);
  for (int round = 0; round < 20; ++round) {
    const Sizes s(random);
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor x = random.tensor(DType::f32, {s.n, s.streams, s.dim}, -2, 2);
    const TestTensor before = random.tensor(DType::f32, {s.n, s.dim}, -2, 2);
    const TestTensor router = random.tensor(DType::f32, {s.n, s.streams}, -2, 2);
    const TestTensor coefs = random.tensor(DType::f32, {s.streams, s.streams});
    const TestTensor scale = random.tensor(DType::f32, {s.dim});
    const bool scaled = random.coin();
    const auto run = [&](Backend& backend) {
      std::pair result{x, TestTensor(type, {s.n, s.dim})};
      OnDevice on(backend);
      backend.ops.correct_streams(*backend.stream, {.x = on(result.first.view()),
                                                    .before = on(before.view()),
                                                    .router = on(router.view()),
                                                    .coefs = on(coefs.view()),
                                                    .scale = scaled ? on(scale.view()) : View{},
                                                    .out = on(result.second.view())});
      on.fetch();
      return result;
    };
    const auto [got, got_out] = run(*tested);
    const auto [expected, expected_out] = run(reference);
    ASSERT_LE(difference(got, expected, 2e-5, 1e-5), 1) << s.streams << " x " << s.dim;
    ASSERT_LE(difference(got_out, expected_out, 2e-5, 1.01 * last_digit(type) + 1e-5), 1);
  }
}

TEST_P(Streams, MatchSize) {
  TestRandom random(3);
  for (int round = 0; round < 20; ++round) {
    const Sizes s(random);
    // The first size is below the minimum in MatchSizeArgs.
    const float size = random.pick({1e-4f, 0.1f, 3.0f});
    const TestTensor x = random.tensor(DType::f32, {s.n, s.dim}, -size, size);
    const TestTensor like = random.tensor(DType::f32, {s.n, s.dim}, -2, 2);
    const auto run = [&](Backend& backend) {
      TestTensor matched = x;
      OnDevice on(backend);
      backend.ops.match_size(*backend.stream, {.x = on(matched.view()), .like = on(like.view())});
      on.fetch();
      return matched;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 1e-5, 1e-6), 1) << s.dim << ", " << size;
  }
}

TEST_P(Streams, KeepTail) {
  TestRandom random(4);
  for (int round = 0; round < 30; ++round) {
    const std::int64_t n = random.integer(1, 7), dim = random.integer(2, random.coin() ? 40 : 3000);
    const DType type = random.pick({DType::f32, DType::bf16, DType::f16});
    const TestTensor x = random.tensor(type, {n, 2 * dim}, -3, 4);
    const float deviations = random.pick({-0.5f, 0.0f, 1.6f});
    const auto run = [&](Backend& backend) {
      TestTensor kept = x;
      OnDevice on(backend);
      backend.ops.keep_tail(*backend.stream,
                            {.x = on(kept.view()).columns(0, dim), .deviations = deviations});
      on.fetch();
      return kept;
    };
    ASSERT_LE(difference(run(*tested), run(reference), 1e-5, 1.01 * last_digit(type) + 3e-5), 1) << dim;
  }
}

}  // namespace
}  // namespace octavo
