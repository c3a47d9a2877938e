// Compares every family with transformers. tools/goldens/make_model_goldens.py makes the data in
// tests/data/models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/testing/length.h"
#include "kernels/backends.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using golden::Golden;

struct NamedBackend {
  std::string name;
  Backend backend;
};

// Returns the reference backend, the CPU backend with every instruction set of this processor, and CUDA.
// Without long tests, returns only every second backend, and always the reference.
std::vector<NamedBackend> backends(const std::string& of) {
  std::vector<NamedBackend> list;
  std::size_t way = 0;
  list.push_back({"reference", make_reference_backend()});
  for (const CpuIsa isa : kCpuIsas) {
    if (!chosen(of, ++way, 2)) continue;
    if (auto cpu = make_cpu_backend({.threads = 2, .isa = isa}))
      list.push_back({fmt::format("cpu {}", name(isa)), std::move(*cpu)});
  }
  if (chosen(of, ++way, 2))
    if (auto cuda = make_cuda_backend()) list.push_back({"cuda", std::move(*cuda)});
  return list;
}
bool supports(const Golden& golden, const Backend& backend) {
  return check_support(golden.directory, {}, backend).has_value();
}
// In builds without CUDA, the CUDA backend is emulated and slow.
bool slow(const Backend& backend) { return backend.device->name() == "emulated"; }

std::unique_ptr<Model> load(const Golden& golden, Backend& backend, ModelDType dtype) {
  auto model = Model::load(golden.directory, backend,
                           {.dtype = dtype, .max_model_len = golden.max_model_len, .threads = 2});
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
  return model ? std::move(*model) : nullptr;
}

std::vector<float> logits_of(const Model& model, Backend& backend, const Golden& golden,
                             const std::vector<int>& chunks, CacheOptions cache = {}) {
  cache.dtype = model.activation;
  auto logits = golden::run(model, backend, golden.ids, chunks, cache);
  EXPECT_TRUE(logits.has_value());
  return logits.value_or(std::vector<float>{});
}

class ModelGolden : public testing::TestWithParam<std::string> {};

// Sizes of chunks (the last size repeats), and options of the KV cache.
struct Way {
  std::vector<int> chunks;
  CacheOptions cache = {};
};
const Way kWays[] = {{{13, 1, 2, 16}}, {{1}}, {{1, 7}}, {{7}, {.block_size = 32, .window_groups = false}}};

TEST_P(ModelGolden, LogitsAreThoseOfTransformers) {
  const Golden golden = golden::read(GetParam());
  std::size_t turn = std::hash<std::string>()(GetParam());
  for (auto& [name, backend] : backends(GetParam())) {
    SCOPED_TRACE(name);
    if (name == "cuda" && !supports(golden, backend)) continue;
    const auto model = load(golden, backend, ModelDType::float32);
    ASSERT_NE(model, nullptr);
    const int all = static_cast<int>(golden.ids.size());
    const auto whole = logits_of(*model, backend, golden, {all});
    const float difference = golden::max_difference(whole, golden.logits);
    fmt::print("max |logit difference| {:<22} {:<15} {:.1e}\n", golden.name, name, difference);
    EXPECT_LE(difference, 1e-4F);

    // Chunks and cache options must not change the results. Without long tests, each model runs with only one
    // of the combinations.
    const std::vector<Way> ways = slow(backend) ? std::vector{kWays[0]} : std::vector(std::begin(kWays), std::end(kWays));
    for (std::size_t i = 0; i < ways.size(); ++i)
      if (long_tests() || i == turn % ways.size()) {
        EXPECT_EQ(whole, logits_of(*model, backend, golden, ways[i].chunks, ways[i].cache)) << i;
      }
    ++turn;
  }
}

TEST_P(ModelGolden, Bf16IsAsGoodAsTransformers) {
  const Golden golden = golden::read(GetParam());
  if (golden.bf16_kl.empty()) GTEST_SKIP() << "not stored in bf16";
  const double theirs = std::accumulate(golden.bf16_kl.begin(), golden.bf16_kl.end(), 0.0) /
                        static_cast<double>(golden.ids.size());
  for (auto& [name, backend] : backends(GetParam() + " in bf16")) {
    SCOPED_TRACE(name);
    if (name == "cuda" && !supports(golden, backend)) continue;
    const auto model = load(golden, backend, ModelDType::automatic);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->activation, DType::bf16);
    const auto logits = logits_of(*model, backend, golden, {static_cast<int>(golden.ids.size())});
    const double ours = golden::mean_kl(golden.logits, logits, model->spec.vocab);
    fmt::print("bf16 KL to f32 {:<22} {:<15} {:.1e}, transformers {:.1e}\n", golden.name, name, ours, theirs);
    EXPECT_LE(ours, 1.5 * theirs);
    EXPECT_EQ(logits, logits_of(*model, backend, golden, slow(backend) ? kWays[0].chunks : kWays[2].chunks));
  }
}

// Finds the scale of embeddings that best explains transformers' bf16 logits. The mean squared difference
// from Octavo's f32 logits is a parabola in the scale. Its minimum is at sqrt(dim) rounded to bf16.
TEST(ModelGoldenInBf16, GemmaScalesEmbeddingsAsTransformersDoes) {
  const Golden golden = golden::read("gemma3-scale");
  Backend backend = make_reference_backend();
  const float scale = load(golden, backend, ModelDType::automatic)->spec.embedding.scale;
  const auto model = load(golden, backend, ModelDType::float32);
  const float root = model->spec.embedding.scale;
  constexpr float kStep = 0.0625F;
  const auto difference = [&](float embed_scale) {
    model->network.ends->embed_scale = embed_scale;
    const auto logits = logits_of(*model, backend, golden, {static_cast<int>(golden.ids.size())});
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double d = logits[i] - golden.bf16_logits[i];
      sum += d * d;
    }
    return sum;
  };
  const double below = difference(root - kStep), at = difference(root), above = difference(root + kStep);
  const double best = root + kStep / 2 * (below - above) / (below - 2 * at + above);
  EXPECT_NEAR(best, scale, 0.2 * std::abs(scale - root)) << "the root is " << root;
  EXPECT_GT(std::abs(scale - root), 0.02);
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, ModelGolden, testing::ValuesIn(golden::names()), test_name);

TEST(ModelGoldenData, IsThere) { EXPECT_GE(golden::names().size(), 30u); }

}  // namespace
}  // namespace octavo
