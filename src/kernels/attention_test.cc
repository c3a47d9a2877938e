// Tests writing keys and values to KV blocks, and attention to these blocks. Each backend is compared with
// the reference, and with itself under different divisions of the work.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "base/testing/length.h"
#include "kernels/testing/attention.h"

namespace octavo {
namespace {

// Returns all test backends plus Hopper, which has a separate kernel for prompts. Hopper is a GPU in builds
// with CUDA, and otherwise the emulator.
std::vector<TestBackend> attention_backends() {
  std::vector<TestBackend> list = test_backends();
#ifdef OCTAVO_CUDA_EMULATED
  list.push_back({"hopper", [](int) { return make_emulated_hopper(); }, true});
#endif
  return list;
}

class AttentionOf : public testing::TestWithParam<TestBackend> {
 protected:
  Backend make(int threads) { return GetParam().make(threads).value(); }
  void SetUp() override {
    if (auto made = GetParam().make(1); !made) GTEST_SKIP() << made.error().message;
  }
  int rounds(int wanted, int slow) const { return octavo::rounds(GetParam().slow ? slow : wanted, 5); }
  bool on_cuda() const { return GetParam().name == "cuda" || GetParam().name == "hopper"; }
  AttentionSetup random_shape_of(Backend& backend, TestRandom& random) {
    for (;;) {
      AttentionSetup shape = random_attention(random);
      if (!backend.ops.supports(shape.spec, shape.q_heads)) continue;
      shape.distance_bias = shape.soft_cap == 0 && !shape.slopes && random.coin();
      if (!on_cuda() && shape.soft_cap == 0 && !shape.slopes && !shape.distance_bias)
        shape.fixed = random.pick({0, 1, 37});
      return shape;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, AttentionOf, testing::ValuesIn(attention_backends()), test_backend_name);

TEST_P(AttentionOf, AgreesWithTheReference) {
  Backend tested = make(3);
  Backend reference = make_reference_backend();
  TestRandom random(11);
  for (int round = 0; round < rounds(30, 15); ++round) {
    const AttentionSetup shape = random_shape_of(tested, random);
    std::vector<int> lengths;
    for (int s = random.integer(1, 4); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 40 : 330));
    const AttentionSequences sequences(shape, lengths, random);
    AttentionRunner got(tested, sequences);
    AttentionRunner expected(reference, sequences);
    got.run_in_random_steps(random, random.pick({1, 7, 200}));
    expected.run_alone();
    // Both backends round keys and values to the cache's format, but only the tested backend rounds
    // probabilities. In fp8 and i4, a value midway between two numbers may round either way, which affects
    // few results. Numbers of i4 are further apart.
    const bool halves = shape.spec.dtype != DType::f32 || shape.activation != DType::f32;
    const std::int64_t one_beyond = shape.spec.dtype == DType::f8_e4m3 ? 100'000
                                    : shape.spec.dtype == DType::i4
                                        ? 100
                                        : std::numeric_limits<std::int64_t>::max();
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const TestTensor& results = got.outputs[s];
      std::int64_t beyond = 0;
      for (std::int64_t i = 0; i < results.elements(); ++i) {
        const double wanted = expected.outputs[s][i];
        if (!(std::abs(results[i] - wanted) <= (halves ? 0.02 : 2e-5) + 0.01 * std::abs(wanted))) ++beyond;
      }
      ASSERT_LE(beyond, results.elements() / one_beyond)
          << "round " << round << " head_dim " << shape.spec.head_dim << " kv " << name(shape.spec.dtype)
          << " act " << name(shape.activation) << " window " << shape.window << " length " << lengths[s];
    }
  }
}

// A rotary embedding with an attention factor also scales the heads, so a norm after the rotation gets
// scaled heads.
TEST_P(AttentionOf, NormsBehindARotationSeeWhatItScales) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(16);
  for (const int rotary_dim : {64, 32}) {
    AttentionSetup shape{};
    shape.spec = {.kv_heads = 2, .head_dim = 64, .block_size = 16, .dtype = DType::f32};
    shape.q_heads = 4;
    shape.activation = DType::f32;
    shape.norm = NormKind::rms;
    shape.norm_rotated = true;
    shape.rope.rotary_dim = rotary_dim;
    const AttentionSequences sequences(shape, {20}, random);  // random numbers as cosines and sines
    AttentionRunner got(tested, sequences);
    AttentionRunner expected(reference, sequences);
    got.run_alone();
    expected.run_alone();
    EXPECT_LE(difference(got.outputs[0], expected.outputs[0], 2e-5, 0.01), 1) << rotary_dim;
  }
}

TEST_P(AttentionOf, SeesBothSidesWhereItIsNotCausal) {
  Backend tested = make(4);
  Backend one = make(1);
  Backend reference = make_reference_backend();
  TestRandom random(15);
  for (int round = 0; round < rounds(12, 3); ++round) {
    AttentionSetup shape = random_shape_of(tested, random);
    shape.causal = false;
    shape.spec.head_dim -= std::exchange(shape.spec.index_dim, 0);
    shape.chunk = 0;
    std::vector<int> lengths;
    for (int s = random.integer(1, 4); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 40 : 300));
    const AttentionSequences sequences(shape, lengths, random);
    AttentionRunner together(tested, sequences);
    AttentionRunner alone(one, sequences, true);
    AttentionRunner expected(reference, sequences);
    together.step(lengths);
    alone.run_alone();
    expected.run_alone();
    const bool halves = shape.spec.dtype != DType::f32 || shape.activation != DType::f32;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      ASSERT_LE(difference(together.outputs[s], expected.outputs[s], halves ? 0.02 : 2e-5, 0.01), 1)
          << "round " << round << " head_dim " << shape.spec.head_dim << " kv " << name(shape.spec.dtype)
          << " act " << name(shape.activation) << " window " << shape.window << " length " << lengths[s];
      ASSERT_TRUE(together.outputs[s] == alone.outputs[s]) << "round " << round << " sequence " << s;
    }
  }
}

TEST_P(AttentionOf, IsTheSameHoweverTheWorkIsCut) {
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(12);
  for (int round = 0; round < rounds(30, 3); ++round) {
    const AttentionSetup shape = random_shape_of(one, random);
    std::vector<int> lengths;
    for (int s = random.integer(1, 5); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 50 : GetParam().slow ? 300 : 1200));
    const AttentionSequences sequences(shape, lengths, random);
    AttentionRunner alone(one, sequences, true);
    alone.run_alone();
    for (const int chunk : {1, 7, 64, 500}) {
      const int longest = *std::max_element(lengths.begin(), lengths.end());
      if (chunk == 1 && longest > (GetParam().slow ? 50 : 300)) continue;
      AttentionRunner chunked(four, sequences);
      chunked.run_in_random_steps(random, chunk);
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(chunked.outputs[s] == alone.outputs[s])
            << "round " << round << " sequence " << s << " of " << lengths.size() << ", chunks up to "
            << chunk;
    }
  }
}

// Dimensions for which the backend computes prompts with separate tiles on tensor cores.
std::vector<AttentionSetup> prompt_shapes() {
  std::vector<AttentionSetup> shapes;
  for (const int head_dim : {64, 128, 96})
    for (const DType dtype : {DType::bf16, DType::f16}) {
      AttentionSetup shape{};
      shape.spec = {.kv_heads = 2, .head_dim = head_dim, .block_size = 16, .dtype = dtype};
      shape.q_heads = 8;
      shape.activation = dtype;
      shapes.push_back(shape);
    }
  shapes[1].window = 100;
  shapes[1].sinks = true;
  shapes[2].slopes = true;
  shapes[4].soft_cap = 5;
  shapes[5].chunk = shapes[5].window = 150;
  return shapes;
}

// A row has the same bits in a prompt, in decoding, and in a prefill chunk of any size. Chunks of up to 4
// tokens use a decoding tile; larger chunks use wide tiles.
TEST_P(AttentionOf, PromptsHaveTheBitsOfDecoding) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(18);
  constexpr int kChunks[] = {4, 40, 200};
  const std::vector<AttentionSetup> shapes = prompt_shapes();
  const std::vector<int> lengths{long_tests() ? (GetParam().slow ? 270 : 700) : (GetParam().slow ? 150 : 260),
                                 60};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    // Without long tests, each emulated backend runs half of the cases, in both formats.
    if (GetParam().slow && !long_tests() && (i + i / 2) % 2 == (GetParam().name == "hopper")) continue;
    const AttentionSetup& shape = shapes[i];
    const AttentionSequences sequences(shape, lengths, random);
    AttentionRunner whole(tested, sequences), expected(reference, sequences);
    whole.run_alone();
    expected.run_alone();
    for (std::size_t s = 0; s < lengths.size(); ++s)
      ASSERT_LE(difference(whole.outputs[s], expected.outputs[s], 0.02, 0.01), 1)
          << "head_dim " << shape.spec.head_dim << " " << name(shape.activation);
    for (std::size_t c = 0; c < std::size(kChunks); ++c) {
      if (!long_tests() && i % std::size(kChunks) != c) continue;
      const int chunk = kChunks[c];
      AttentionRunner chunked(tested, sequences);
      chunked.run_in_random_steps(random, chunk);
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(chunked.outputs[s] == whole.outputs[s])
            << "head_dim " << shape.spec.head_dim << " " << name(shape.activation) << " sequence " << s
            << ", chunks up to " << chunk;
    }
  }
}

// Dimensions of DeepSeek-V2, V3 and V3.2.
TEST_P(AttentionOf, LatentsOfPublishedSizes) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(17);
  for (const auto& [heads, index_dim, dtype, length] : {std::tuple{16, 0, DType::bf16, 140}, {128, 0, DType::bf16, 20},
                                                       {16, 0, DType::f8_e4m3, 40}, {64, 128, DType::bf16, 50}}) {
    AttentionSetup shape{};
    shape.spec = {.kv_heads = 1,
                  .head_dim = 576 + index_dim,
                  .block_size = 64,
                  .dtype = dtype,
                  .values_in_keys = 512,
                  .index_dim = index_dim};
    if (!tested.ops.supports(shape.spec, heads)) continue;
    const int tokens = GetParam().slow && !long_tests() ? length / 2 : length;
    shape.q_heads = heads;
    shape.activation = DType::bf16;
    shape.rope.rotary_dim = 64;
    const AttentionSequences sequences(shape, {tokens, 3}, random);
    AttentionRunner whole(tested, sequences), decoding(tested, sequences), expected(reference, sequences);
    whole.run_alone();
    expected.run_alone();
    decoding.step({tokens - 4, 1});
    for (int i = 0; i < 4; ++i) decoding.step({1, i < 2 ? 1 : 0});
    for (std::size_t s = 0; s < 2; ++s) {
      ASSERT_LE(difference(whole.outputs[s], expected.outputs[s], 0.02, 0.01), 1) << heads << " heads";
      ASSERT_TRUE(decoding.outputs[s] == whole.outputs[s]) << heads << " heads, index " << index_dim;
    }
  }
}

TEST_P(AttentionOf, IsTheSameWithSharedPrefixes) {
  if (on_cuda() && GetParam().slow) GTEST_SKIP() << "takes too long on the emulator";
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(13);
  for (int round = 0; round < rounds(12, 3); ++round) {
    AttentionSetup shape = random_shape_of(one, random);
    shape.spec.block_size = random.pick({16, 32, 64});
    // five sequences with nested prefixes and one independent sequence
    std::vector<int> lengths{1100, 1030, 900, 1000, 700, 600, 800};
    for (int& length : lengths) length += random.integer(0, 40);
    AttentionSequences sequences(shape, lengths, random);
    sequences.share(1, 0, 1024);
    sequences.share(2, 0, 832);
    sequences.share(3, 0, 320);
    sequences.share(5, 4, 512);
    AttentionRunner alone(one, sequences, true);
    alone.run_alone();
    for (Backend* backend : {&one, &four}) {
      AttentionRunner together(*backend, sequences);
      // The first step has all tokens except the last five, which follow in four steps.
      std::vector<int> tokens;
      for (const int length : lengths) tokens.push_back(length - 5);
      together.step(tokens);
      for (const int more : {1, 1, 2, 1}) together.step(std::vector<int>(lengths.size(), more));
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(together.outputs[s] == alone.outputs[s]) << "round " << round << " sequence " << s;
    }
  }
}

// Shapes with which every backend shares prefixes: each has further properties of caches, layers and kernels.
std::vector<AttentionSetup> decode_shapes() {
  const auto shape_of = [](int head_dim, int group, DType cache, DType activation) {
    AttentionSetup shape{};
    shape.spec = {.kv_heads = group == 2 ? 2 : 1, .head_dim = head_dim, .block_size = 32, .dtype = cache};
    shape.q_heads = shape.spec.kv_heads * group;
    shape.activation = activation;
    return shape;
  };
  std::vector<AttentionSetup> shapes{
      shape_of(128, 4, DType::bf16, DType::bf16),   shape_of(64, 5, DType::f16, DType::f16),
      shape_of(64, 4, DType::i8, DType::bf16),      shape_of(64, 8, DType::i4, DType::f16),
      shape_of(80, 2, DType::f8_e4m3, DType::bf16), shape_of(256, 4, DType::bf16, DType::bf16),
      shape_of(64, 4, DType::bf16, DType::f32)};
  shapes[0].window = 250;
  shapes[1].soft_cap = 5;
  shapes[2].slopes = true;
  shapes[3].sinks = true;
  shapes[4].distance_bias = true;
  shapes[5].window = shapes[5].chunk = 130;
  shapes[6].window = 100;
  return shapes;
}

// The plan has no window, as if other layers saw all tokens, so that sequences share blocks that this layer
// sees only in part.
TEST_P(AttentionOf, DecodesWithTheSameBitsWithSharedPrefixes) {
  Backend backend = make(2);
  TestRandom random(19);
  const std::vector<AttentionSetup> shapes = decode_shapes();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (GetParam().slow && !long_tests() && i % 2 == (GetParam().name == "hopper")) continue;
    // nested prefixes, and a sequence that shares none
    AttentionSequences sequences(shapes[i], {275, 270, 262, 266, 140, 130}, random);
    sequences.frees_blocks = false;
    sequences.share(1, 0, 256);
    sequences.share(2, 0, 256);
    sequences.share(3, 0, 128);
    sequences.share(4, 0, 128);
    AttentionRunner alone(backend, sequences, true), together(backend, sequences, true);
    alone.run_alone();
    std::vector<int> tokens;
    for (const int length : sequences.lengths) tokens.push_back(length - 3);
    together.step(tokens);
    together.step({1, 1, 1, 1, 1, 1});
    together.step({2, 2, 2, 1, 2, 2});
    together.step({0, 0, 0, 1, 0, 0});
    for (std::size_t s = 0; s < sequences.lengths.size(); ++s)
      ASSERT_TRUE(together.outputs[s] == alone.outputs[s]) << "shape " << i << " sequence " << s;
  }
}

// A token whose values overflow affects the results of this token and of later tokens, but not of earlier
// ones.
TEST_P(AttentionOf, LaterValuesReachNoEarlierQuery) {
  Backend backend = make(2);
  TestRandom random(14);
  std::vector<AttentionSetup> shapes = prompt_shapes();
  for (int round = 0; round < rounds(12, 3); ++round) shapes.push_back(random_shape_of(backend, random));
  for (const AttentionSetup& shape : shapes) {
    const int length = random.integer(2, long_tests() ? 400 : 200);
    AttentionSequences sequences(shape, {length}, random);
    AttentionRunner clean(backend, sequences);
    clean.run_alone();
    const int bad = random.integer(1, length - 1);
    const std::int64_t row = sequences.inputs[0].view().size(1);
    for (std::int64_t i = (bad + 1) * row - shape.spec.head_dim; i < (bad + 1) * row; ++i)
      sequences.inputs[0].set(i, random.pick({std::nanf(""), HUGE_VALF}));
    AttentionRunner spoilt(backend, sequences);
    spoilt.run_alone();
    ASSERT_TRUE(spoilt.outputs[0].rows(0, bad) == clean.outputs[0].rows(0, bad))
        << "head_dim " << shape.spec.head_dim << " token " << bad << " of " << length << " kv " << name(shape.spec.dtype);
    const std::int64_t last = std::int64_t{bad + 1} * shape.q_heads * shape.spec.value_dim() - 1;
    // f8_e4m3 has no infinity, and sparse attention may omit the query's own token. In both cases the last
    // output may be finite.
    ASSERT_TRUE(shape.spec.dtype == DType::f8_e4m3 || shape.spec.index_dim > 0 ||
                !std::isfinite(spoilt.outputs[0][last]));
  }
}

}  // namespace
}  // namespace octavo
