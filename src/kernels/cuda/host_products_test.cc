// Tests products of experts that the CPU computes for the GPU's stream, on a GPU or on the emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/cuda_host_weights.h"
#include "kernels/testing/backends.h"
#include "kernels/testing/quant.h"

namespace octavo {
namespace {

constexpr std::int64_t kExperts = 4, kTokens = 9;
constexpr DType kActivations[] = {DType::f32, DType::bf16, DType::f16};

// Two pairs have no expert (index -1), as with experts that do nothing.
struct Pairs {
  std::vector<std::int32_t> starts{0, 3, 3, 11, 18}, tokens;
  std::int64_t count = 20;

  explicit Pairs(TestRandom& random) {
    for (std::int64_t p = 0; p < count; ++p) tokens.push_back(random.integer(0, kTokens - 1));
  }
};

// Returns a matrix of 50 rows for each expert, all in the same format. `cols` is a multiple of 256.
std::vector<TestPart> random_experts(TestRandom& random, Encoding encoding, std::int64_t cols) {
  const bool blocks = block_shape(encoding).elements > 1,
             codes = encoding == Encoding::int4 || encoding == Encoding::int8;
  const std::int64_t groups = cols / (encoding == Encoding::fp8 ? 128 : 32);
  const bool zeros = codes && random.coin();
  std::vector<TestPart> parts;
  for (int e = 0; e < kExperts; ++e)
    parts.push_back(blocks ? random_blocks(random, encoding, 50, cols)
                           : random_codes(random, encoding, 50, cols, groups, zeros));
  return parts;
}

std::vector<MatrixPart> parts_of(const std::vector<TestPart>& matrices) {
  std::vector<MatrixPart> parts;
  for (const TestPart& matrix : matrices) parts.push_back(matrix.part());
  return parts;
}

TestTensor converted(const TestTensor& from, DType type) {
  TestTensor to(type, {from.view().size(0), from.view().size(1)});
  for (std::int64_t i = 0; i < from.elements(); ++i) to.set(i, from[i]);
  return to;
}

class CudaHostProducts : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_cuda_backend();
    if (!made) GTEST_SKIP() << made.error().message;
    cuda_.emplace(*std::move(made));
    cpu_ = cuda_host_backend(*cuda_->device, 3).value();
  }

  // The matrices of all experts, for the GPU's operator (the CPU computes), and for the CPU's.
  struct Experts {
    std::vector<WeightPtr> owned;
    std::vector<const Weight*> shared, own;
  };
  Experts experts(const std::vector<MatrixPart>& parts, DType activation) const {
    const DType act = cpu_->ops.activation(activation);
    Experts all;
    for (const MatrixPart& part : parts) {
      const auto prepare = [&] { return cpu_->ops.prepare(*cpu_->device, {{&part, 1}, act}).value(); };
      all.owned.push_back(cuda_compute_on_host(prepare(), activation));
      all.shared.push_back(all.owned.back().get());
      all.owned.push_back(prepare());
      all.own.push_back(all.owned.back().get());
    }
    return all;
  }

  static TestTensor product(Backend& backend, const TestTensor& x, std::span<const Weight* const> w,
                            const Pairs& pairs, const TestTensor* bias) {
    TestTensor y(x.dtype(), {pairs.count, w[0]->rows()});
    for (std::int64_t i = 0; i < y.elements(); ++i) y.set(i, -5);
    auto starts = pairs.starts, tokens = pairs.tokens;
    OnDevice on(backend);
    backend.ops.grouped_matmul(*backend.stream, {.x = on(x.view()),
                                                 .rows = on(View::of(std::span(tokens))),
                                                 .starts = on(View::of(std::span(starts))),
                                                 .w = w,
                                                 .bias = bias != nullptr ? on(bias->view()) : View{},
                                                 .y = on(y.view())});
    on.fetch();
    return y;
  }

  // Expects the bits of the CPU backend, rounded to the format of the GPU's activations.
  void expect_the_bits_of_the_cpu(TestRandom& random, const std::vector<MatrixPart>& parts,
                                  DType activation) {
    const Experts w = experts(parts, activation);
    const Pairs pairs(random);
    const TestTensor x = random.tensor(activation, {kTokens, w.own[0]->cols()});
    const TestTensor biases = random.tensor(DType::f32, {kExperts, w.own[0]->rows()});
    const TestTensor* const bias = random.coin() ? &biases : nullptr;
    const TestTensor on_cpu = product(*cpu_, converted(x, w.own[0]->activation()), w.own, pairs, bias);
    ASSERT_EQ(product(*cuda_, x, w.shared, pairs, bias), converted(on_cpu, activation))
        << name(activation) << " " << name(parts[0].encoding);
  }

  std::optional<Backend> cuda_;
  Backend* cpu_ = nullptr;
};

TEST_F(CudaHostProducts, HaveTheBitsOfTheCpu) {
  TestRandom random(81);
  for (const DType activation : kActivations)
    for (const bool wide : {false, true}) {
      std::vector<TestTensor> matrices;
      std::vector<MatrixPart> parts;
      const std::int64_t rows = random.integer(1, 90), cols = wide ? 600 : random.integer(1, 70);
      for (int e = 0; e < kExperts; ++e) {
        matrices.push_back(random.tensor(activation, {rows, cols}));
        parts.push_back({.values = matrices.back().view()});
      }
      expect_the_bits_of_the_cpu(random, parts, activation);
    }
}

TEST_F(CudaHostProducts, OfQuantisedMatricesHaveTheBitsOfTheCpu) {
  TestRandom random(82);
  std::vector<Encoding> encodings(kQuantisedEncodings.begin(), kQuantisedEncodings.end());
  encodings.push_back(Encoding::fp8);
  for (const Encoding encoding : encodings)
    for (const DType activation : kActivations) {
      const std::vector<TestPart> matrices = random_experts(random, encoding, 256);
      expect_the_bits_of_the_cpu(random, parts_of(matrices), activation);
    }
}

// The GPU multiplies 16-bit activations, the CPU activations of 8 bits.
TEST_F(CudaHostProducts, OfQuantisedMatricesAreNearTheGpus) {
  TestRandom random(83);
  for (const Encoding encoding : {Encoding::int4, Encoding::int8, Encoding::mxfp4, Encoding::q4_k}) {
    const std::vector<TestPart> matrices = random_experts(random, encoding, 512);
    const std::vector<MatrixPart> parts = parts_of(matrices);
    const Experts w = experts(parts, DType::bf16);
    std::vector<WeightPtr> owned;
    std::vector<const Weight*> on_gpu;
    for (const MatrixPart& part : parts) {
      owned.push_back(cuda_->ops.prepare(*cuda_->device, {{&part, 1}, DType::bf16}).value());
      on_gpu.push_back(owned.back().get());
    }
    const Pairs pairs(random);
    const TestTensor x = random.tensor(DType::bf16, {kTokens, 512});
    const TestTensor ours = product(*cuda_, x, w.shared, pairs, nullptr),
                     theirs = product(*cuda_, x, on_gpu, pairs, nullptr);
    double squares = 0, errors = 0;
    for (std::int64_t i = 0; i < ours.elements(); ++i) {
      squares += double{theirs[i]} * theirs[i];
      errors += (double{ours[i]} - theirs[i]) * (double{ours[i]} - theirs[i]);
    }
    EXPECT_LT(std::sqrt(errors / squares), 0.01) << name(encoding);
    EXPECT_GT(errors, 0) << "the CPU has not computed";
  }
}

// A graph reads the activations that are in memory when it runs.
TEST_F(CudaHostProducts, AreInGraphs) {
  TestRandom random(84);
  std::vector<TestTensor> matrices;
  std::vector<MatrixPart> parts;
  for (int e = 0; e < kExperts; ++e) matrices.push_back(random.tensor(DType::bf16, {40, 64}));
  for (const TestTensor& matrix : matrices) parts.push_back({.values = matrix.view()});
  const Experts w = experts(parts, DType::bf16);
  Pairs pairs(random);
  TestTensor x(DType::bf16, {kTokens, 64}), y(DType::bf16, {pairs.count, 40});
  OnDevice on(*cuda_);
  const GroupedMatmulArgs args{.x = on(x.view()),
                               .rows = on(View::of(std::span(pairs.tokens))),
                               .starts = on(View::of(std::span(pairs.starts))),
                               .w = w.shared,
                               .y = on(y.view())};
  const auto run = [&] { cuda_->ops.grouped_matmul(*cuda_->stream, args); };
  run();
  const std::unique_ptr<Recording> graph = cuda_->stream->record(run);
  for (int round = 0; round < 3; ++round) {
    const TestTensor input = random.tensor(DType::bf16, {kTokens, 64});
    cuda_->device->upload(*cuda_->stream, args.x, input.view().data);
    cuda_->device->clear(*cuda_->stream, args.y);
    cuda_->stream->replay(*graph);
    cuda_->device->download(*cuda_->stream, y.view().data, args.y);
    cuda_->stream->synchronize();
    const TestTensor expected = product(*cpu_, input, w.own, pairs, nullptr);
    EXPECT_EQ(y.rows(0, 18), expected.rows(0, 18)) << "round " << round;
  }
}

}  // namespace
}  // namespace octavo
