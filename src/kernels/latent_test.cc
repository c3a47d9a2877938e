// Compares head_matmul, which multiplies each head by a separate matrix, with the reference for every
// instruction set, and with itself in any batch. attention_test.cc tests the other parts of latent attention.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

class HeadMatmul : public BesideTheReference {
 protected:
  void SetUp() override {
    BesideTheReference::SetUp();
    if (!IsSkipped() && !tested->ops.supports({.kv_heads = 1, .head_dim = 40, .values_in_keys = 32}, 4))
      GTEST_SKIP() << "no latent attention";
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, HeadMatmul, testing::ValuesIn(test_backends()), test_backend_name);

// Returns a view of a tensor [m, heads, dim] without the first elements of each head.
View ends(View view, std::int64_t dim) {
  const std::int64_t skipped = view.size(2) - dim;
  view.data = static_cast<std::byte*>(view.data) + skipped * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape[2] = dim;
  return view;
}

TEST_P(HeadMatmul, IsThatOfTheReferenceAndTheSameForEveryBatch) {
  TestRandom random(31);
  for (int round = 0; round < 20; ++round) {
    const DType format = random.pick({DType::f32, DType::bf16});
    const std::int64_t m = random.integer(1, GetParam().slow ? 40 : 90), heads = random.integer(1, 5);
    const std::int64_t rows = kHeadRows * random.integer(1, 4);
    const std::int64_t cols = random.pick({1, 7, 16, 40, 128, 192, 512, kMaxLatentDim});
    const TestTensor matrix = random.tensor(format, {heads * rows, cols});
    const std::vector<MatrixPart> parts{{.values = matrix.view()}};
    const TestTensor x = random.tensor(format, {m, heads, cols + random.pick({0, 8})});
    const std::int64_t gap = random.pick({0, 16});
    const auto run = [&](Backend& backend, std::int64_t at_once) {
      const WeightPtr w = backend.ops.prepare(*backend.device, {parts, format}).value();
      TestTensor y(format, {m, heads, rows + gap});
      OnDevice on(backend);
      const View xs = on(x.view()), ys = on(y.view());
      for (std::int64_t i = 0; i < m; i += at_once) {
        const std::int64_t count = std::min(at_once, m - i);
        backend.ops.head_matmul(
            *backend.stream, {.x = ends(xs, cols).rows(i, count), .w = *w, .y = ends(ys, rows).rows(i, count)});
      }
      on.fetch();
      return y;
    };
    const TestTensor together = run(*tested, m);
    ASSERT_LE(difference(together, run(reference, m), 2e-5, format == DType::f32 ? 1e-5 : 0.01), 1)
        << m << " x " << heads << ", " << rows << " x " << cols << " " << name(format);
    ASSERT_TRUE(together == run(*tested, 1)) << m << " x " << heads << ", " << rows << " x " << cols;
    ASSERT_TRUE(together == run(*tested, 7)) << m << " x " << heads << ", " << rows << " x " << cols;
  }
}

}  // namespace
}  // namespace octavo
