// Measures how much accuracy KV caches of 8 and 4 bits lose, with the repository's demo model and text that
// the model has generated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/backends.h"
#include "model/model.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

constexpr int kTokens = 192;
const std::vector<int> kWhole{kTokens};

std::vector<std::int32_t> written_by(const Model& model, Backend& backend) {
  std::mt19937 random(5);
  std::vector<std::int32_t> ids{1};
  while (std::ssize(ids) < kTokens) {
    const std::vector<float> logits =
        golden::run(model, backend, ids, kWhole, {.dtype = DType::bf16}).value();
    const auto* last = logits.data() + (std::ssize(ids) - 1) * model.spec.vocab;
    std::vector<double> weights;
    for (int i = 0; i < model.spec.vocab; ++i) weights.push_back(std::exp(double{last[i]}));
    ids.push_back(std::discrete_distribution<std::int32_t>(weights.begin(), weights.end())(random));
  }
  return ids;
}

TEST(CacheFormat, FewBitsStayCloseToBf16) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  auto model = Model::load("models/demo", backend, {.dtype = ModelDType::bfloat16}).value();
  const std::vector<std::int32_t> ids = written_by(*model, backend);
  const auto logits = [&](DType cache) {
    return golden::run(*model, backend, ids, kWhole, {.dtype = cache}).value();
  };
  const std::vector<float> expected = logits(DType::bf16);
  const auto kl = [&](DType cache) { return golden::mean_kl(expected, logits(cache), model->spec.vocab); };
  const double fp8 = kl(DType::f8_e4m3);
  const double int8 = kl(DType::i8);
  const double int4 = kl(DType::i4);
  fmt::print(
      "KL to a bf16 cache: fp8 {:.2e}, int8_per_token_head {:.2e}, int4_per_token_head {:.2e}, f32 {:.2e}\n",
      fp8, int8, int4, kl(DType::f32));
  EXPECT_GT(fp8, 0);
  EXPECT_GT(int8, 0);
  EXPECT_LT(fp8, 1e-2);
  EXPECT_LT(int8, 1e-3);
  EXPECT_GT(int4, int8);
  EXPECT_LT(int4, 3e-2);
}

}  // namespace
}  // namespace octavo
