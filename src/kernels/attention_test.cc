// Storing into pages and attending over them: the backends against the specification, and against themselves
// however the work is cut.
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "base/test_length.h"
#include "kernels/test_backends.h"
#include "kernels/test_tensors.h"

namespace octavo {
namespace {

struct Shape {
  KvSpec spec;
  int q_heads;
  DType activation;
  int window;
  float soft_cap;
  bool sinks;
  Rope rope;
  NormKind norm;
  bool whole_row;
  bool norm_turned = false;
  bool v_norm = false;
  int chunk = 0;
  bool slopes = false;
  bool causal = true;
  bool distance_bias = false;

  bool latent() const { return spec.values_in_keys > 0; }
};

// Some sequences with their inputs; blocks are scattered over a pool that is otherwise full of NaN.
class Sequences {
 public:
  Sequences(const Shape& of_shape, std::vector<int> of_lengths, TestRandom& random)
      : shape(of_shape), lengths(std::move(of_lengths)) {
    const int kv = shape.latent() ? 1 : 2 * shape.spec.kv_heads;
    const int row = (shape.q_heads + kv) * shape.spec.head_dim;
    std::vector<std::int32_t> ids;
    for (const int length : lengths) {
      inputs.push_back(random.tensor(shape.activation, {length, row}, -2, 2));
      blocks_per_table = std::max<std::int64_t>(blocks_per_table, blocks_of(length) + 1);
      blocks += blocks_of(length) + 2;
    }
    ids.resize(static_cast<std::size_t>(blocks));
    std::iota(ids.begin(), ids.end(), 0);
    random.shuffle(ids);
    tables.assign(lengths.size() * static_cast<std::size_t>(blocks_per_table), -7);
    for (std::size_t s = 0; s < lengths.size(); ++s)
      for (std::int64_t b = 0; b < blocks_of(lengths[s]); ++b) {
        tables[s * static_cast<std::size_t>(blocks_per_table) + static_cast<std::size_t>(b)] = ids.back();
        ids.pop_back();
      }
    const int heads = std::max(shape.q_heads, shape.spec.kv_heads);
    weights = random.tensor(DType::f32, {2, heads * shape.spec.head_dim});
    const int angles = std::max(1, shape.rope.rotary_dim / 2);
    sinks = random.tensor(DType::f32, {shape.q_heads}, -3, 6);
    slopes = random.tensor(DType::f32, {shape.q_heads}, 0.003F, 0.7F);
    distance_bias = random.tensor(DType::f32, {shape.q_heads, 2 * 37 + 1}, -3, 3);
    cos = random.tensor(DType::f32, {5000, angles});
    sin = random.tensor(DType::f32, {5000, angles});
  }
  // Sequence `s` begins with the first `tokens` tokens of sequence `with`, in the same blocks.
  void share(std::size_t s, std::size_t with, int tokens) {
    CHECK(tokens % shape.spec.block_size == 0 && tokens <= std::min(lengths[s], lengths[with]));
    const std::int64_t row = inputs[s].view().size(1);
    for (std::int64_t i = 0; i < tokens * row; ++i) inputs[s].set(i, inputs[with][i]);
    for (std::int64_t b = 0; b < tokens / shape.spec.block_size; ++b)
      tables[s * static_cast<std::size_t>(blocks_per_table) + static_cast<std::size_t>(b)] =
          tables[with * static_cast<std::size_t>(blocks_per_table) + static_cast<std::size_t>(b)];
  }

  std::int64_t blocks_of(std::int64_t length) const {
    return (length + shape.spec.block_size - 1) / shape.spec.block_size;
  }

  Shape shape;
  std::vector<int> lengths;
  std::vector<TestTensor> inputs;
  std::vector<std::int32_t> tables;
  std::int64_t blocks_per_table = 0;
  std::int64_t blocks = 0;
  TestTensor weights, cos, sin, sinks, slopes, distance_bias;
};

// Runs sequences through one backend, with a given number of tokens per call.
class Runner {
 public:
  // With `whole_plan`, the plan does not know the window.
  Runner(Backend& backend, const Sequences& sequences, bool whole_plan = false)
      : backend_(backend), all_(sequences) {
    const std::int64_t block_bytes = backend.ops.kv_block_bytes(all_.shape.spec);
    const auto pool_bytes = static_cast<std::size_t>(all_.blocks * block_bytes);
    const std::vector<float> nan(pool_bytes / 4, std::nanf(""));
    pool_ = backend.device->allocate(pool_bytes).value();
    backend.device->upload(*backend.stream, pool_.view(DType::f32, {std::ssize(nan)}), nan.data());
    backend.stream->synchronize();
    cache_ = {static_cast<std::byte*>(pool_.data()), all_.blocks, block_bytes, all_.shape.spec};
    AttentionLimits limits{.max_tokens = 0,
                           .max_sequences = static_cast<int>(all_.lengths.size()),
                           .max_length = 0,
                           .q_heads = all_.shape.q_heads,
                           .kv = all_.shape.spec,
                           .window = whole_plan ? 0 : all_.shape.window,
                           .causal = all_.shape.causal};
    for (const int length : all_.lengths) {
      limits.max_tokens += length;
      limits.max_length = std::max(limits.max_length, length);
      outputs.emplace_back(all_.shape.activation, std::vector<std::int64_t>{length, out_dim()});
      done_.push_back(0);
    }
    plan_ = backend.ops.make_attention_plan(*backend.device, limits).value();
  }

  // One step: tokens[s] more tokens of sequence s (0: not in the batch).
  void step(const std::vector<int>& tokens) {
    const Shape& shape = all_.shape;
    std::vector<std::int32_t> starts{0}, lengths, table, positions;
    std::vector<std::int64_t> slots;
    for (std::size_t s = 0; s < tokens.size(); ++s) {
      if (tokens[s] == 0) continue;
      for (int t = done_[s]; t < done_[s] + tokens[s]; ++t) {
        positions.push_back(t);
        const auto block = all_.tables[s * static_cast<std::size_t>(all_.blocks_per_table) +
                                       static_cast<std::size_t>(t / shape.spec.block_size)];
        slots.push_back(std::int64_t{block} * shape.spec.block_size + t % shape.spec.block_size);
      }
      starts.push_back(static_cast<std::int32_t>(positions.size()));
      lengths.push_back(done_[s] + tokens[s]);
      for (std::int64_t b = 0; b < all_.blocks_per_table; ++b) {
        const bool left = shape.window > 0 && (b + 1) * shape.spec.block_size <= done_[s] - shape.window + 1;
        table.push_back(left ? -1
                             : all_.tables[s * static_cast<std::size_t>(all_.blocks_per_table) +
                                           static_cast<std::size_t>(b)]);
      }
    }
    const auto n = static_cast<std::int64_t>(positions.size());
    TestTensor qkv(shape.activation, {n, all_.inputs[0].view().size(1)});
    TestTensor q(shape.activation, {n, shape.q_heads, shape.spec.score_dim()});
    TestTensor out(shape.activation, {n, out_dim()});
    std::int64_t row = 0;
    each_token(tokens, [&](std::size_t s, int t) { copy_row(all_.inputs[s], t, qkv, row++); });

    const std::int64_t key_dim = shape.spec.score_dim();
    TestTensor kv(DType::f32, {n, key_dim});  // of latent attention, beside all of the queries
    for (std::int64_t i = 0; i < n && shape.latent(); ++i) {
      const std::int64_t first = i * qkv.view().size(1);
      for (std::int64_t d = 0; d < dim(); ++d) q.set(i * dim() + d, qkv[first + d]);
      for (std::int64_t d = 0; d < key_dim; ++d) kv.set(i * key_dim + d, qkv[first + dim() + d]);
    }
    // Inputs of an indexer: small integers, so that scores are exact and ties are frequent.
    const std::int64_t index_dim = shape.spec.index_dim;
    TestTensor index_keys(shape.activation, {n, index_dim}), index_weights(DType::f32, {n, kIndexHeads});
    TestTensor index_q(shape.activation, {n, kIndexHeads, index_dim}), chosen(DType::f32, {n, kChosen});
    row = 0;
    each_token(tokens, [&](std::size_t, int t) {
      const auto fill = [&](TestTensor& tensor, std::int64_t count, unsigned kind) {
        for (std::int64_t i = 0; i < count; ++i)
          tensor.set(row * count + i,
                     whole_number(static_cast<unsigned>(t), static_cast<unsigned>(i) * 4 + kind));
      };
      fill(index_keys, index_dim, 0);
      fill(index_q, kIndexHeads * index_dim, 1);
      fill(index_weights, kIndexHeads, 2);
      ++row;
    });

    const std::int64_t pairs = all_.cos.view().size(1);
    TestTensor cos(DType::f32, {n, pairs}), sin(DType::f32, {n, pairs});
    for (std::int64_t i = 0; i < n; ++i) {
      copy_row(all_.cos, positions[static_cast<std::size_t>(i)], cos, i);
      copy_row(all_.sin, positions[static_cast<std::size_t>(i)], sin, i);
    }

    OnDevice on(backend_);
    Rope rope = shape.rope;
    rope.cos = on(cos.view());
    rope.sin = on(sin.view());
    const auto norm = [&](int heads) {
      const std::int64_t size = shape.whole_row ? heads * shape.spec.head_dim : shape.spec.head_dim;
      const View w = all_.weights.view();
      return Norm{shape.norm, 1e-6f, View::of(on(w).row<float>(0), DType::f32, {size}), {}};
    };
    const View to = on(View::of(std::span(slots)));
    if (shape.latent()) {
      const View weight = View::of(on(all_.weights.view()).data, DType::f32, {shape.spec.values_in_keys});
      backend_.ops.latent_store(*backend_.stream,
                                {.kv = on(kv.view()),
                                 .index_keys = index_dim > 0 ? on(index_keys.view()) : View{},
                                 .norm = {NormKind::rms, 1e-6f, weight, {}},
                                 .rope = rope,
                                 .slots = to,
                                 .cache = cache_,
                                 .q = on(q.view()),
                                 .q_out = on(q.view())});
    } else {
      backend_.ops.qkv_store(*backend_.stream, {.qkv = on(qkv.view()),
                                                .q_heads = shape.q_heads,
                                                .q_norm = norm(shape.q_heads),
                                                .k_norm = norm(shape.spec.kv_heads),
                                                .norm_whole_row = shape.whole_row,
                                                .norm_turned = shape.norm_turned,
                                                .v_norm = shape.v_norm ? norm(1) : Norm{},
                                                .rope = rope,
                                                .slots = to,
                                                .cache = cache_,
                                                .q_out = on(q.view())});
    }
    backend_.ops.plan_attention(*backend_.stream, {starts, lengths, table, all_.blocks_per_table}, *plan_);
    View seen = index_dim > 0 ? chosen.view() : View{};
    seen.dtype = DType::i32;
    if (index_dim > 0)
      backend_.ops.choose_tokens(*backend_.stream, {.q = on(index_q.view()),
                                                    .weights = on(index_weights.view()),
                                                    .cache = cache_,
                                                    .plan = *plan_,
                                                    .chosen = on(seen)});
    backend_.ops.attention(*backend_.stream, {.q = on(q.view()),
                                              .cache = cache_,
                                              .plan = *plan_,
                                              .scale = 0.3f,
                                              .causal = shape.causal,
                                              .window = shape.window,
                                              .chunk = shape.chunk,
                                              .soft_cap = shape.soft_cap,
                                              .slopes = shape.slopes ? on(all_.slopes.view()) : View{},
                                              .distance_bias = shape.distance_bias ? on(all_.distance_bias.view()) : View{},
                                              .sinks = shape.sinks ? on(all_.sinks.view()) : View{},
                                              .chosen = index_dim > 0 ? on(seen) : View{},
                                              .out = on(out.view())});
    on.fetch();
    row = 0;
    each_token(tokens, [&](std::size_t s, int t) { copy_row(out, row++, outputs[s], t); });
    for (std::size_t s = 0; s < tokens.size(); ++s) done_[s] += tokens[s];
  }

  // Everything, in random steps.
  void run_in_random_steps(TestRandom& random, int chunk_max) {
    for (;;) {
      std::vector<int> tokens;
      bool any = false;
      for (std::size_t s = 0; s < done_.size(); ++s) {
        const int left = all_.lengths[s] - done_[s];
        tokens.push_back(left == 0 ? 0 : std::min(left, random.integer(0, chunk_max)));
        any = any || left > 0;
      }
      if (!any) return;
      if (std::accumulate(tokens.begin(), tokens.end(), 0) > 0) step(tokens);
    }
  }
  void run_alone() {
    for (std::size_t s = 0; s < done_.size(); ++s) {
      std::vector<int> tokens(done_.size(), 0);
      tokens[s] = all_.lengths[s];
      step(tokens);
    }
  }

  std::vector<TestTensor> outputs;  // of each sequence

 private:
  static constexpr int kIndexHeads = 7, kChosen = 40;
  static float whole_number(unsigned token, unsigned place) {
    unsigned mixed = token * 40503 + place * 2654435761U;
    mixed = (mixed ^ (mixed >> 15)) * 2246822519U;
    return static_cast<float>((mixed >> 20) % 5) - 2;
  }
  std::int64_t dim() const { return std::int64_t{all_.shape.q_heads} * all_.shape.spec.score_dim(); }
  std::int64_t out_dim() const { return std::int64_t{all_.shape.q_heads} * all_.shape.spec.value_dim(); }
  template <class Body>
  void each_token(const std::vector<int>& tokens, Body&& body) {
    for (std::size_t s = 0; s < tokens.size(); ++s)
      for (int t = done_[s]; t < done_[s] + tokens[s]; ++t) body(s, t);
  }
  static void copy_row(const TestTensor& from, std::int64_t i, TestTensor& to, std::int64_t j) {
    const std::int64_t row = from.view().size(1);
    for (std::int64_t k = 0; k < row; ++k) to.set(j * row + k, from[i * row + k]);
  }

  Backend& backend_;
  const Sequences& all_;
  Buffer pool_;
  KvLayer cache_;
  std::unique_ptr<AttentionPlan> plan_;
  std::vector<int> done_;
};

Shape random_shape(TestRandom& random) {
  Shape shape{};
  shape.spec.kv_heads = random.integer(1, 3);
  shape.spec.head_dim = random.pick({8, 16, 24, 40, 64, 80, 96, 128, 256, 512});
  shape.spec.block_size = random.pick({16, 32, 64});
  shape.spec.dtype =
      random.pick({DType::f32, DType::bf16, DType::bf16, DType::f16, DType::f8_e4m3, DType::i8});
  shape.q_heads = shape.spec.kv_heads * random.pick({1, 2, 4, 5, 8});
  shape.activation = random.pick({DType::f32, DType::bf16, DType::f16});
  shape.window = random.pick({0, 0, 1, 20, 100, 300});
  shape.soft_cap = random.pick({0.0f, 0.0f, 5.0f});
  shape.sinks = random.coin();
  shape.norm = random.pick({NormKind::none, NormKind::rms, NormKind::layer});
  shape.whole_row = random.coin();
  shape.rope.interleaved = random.coin();
  shape.rope.rotary_dim = random.pick({0, shape.spec.head_dim, shape.spec.head_dim / 2});
  shape.norm_turned = shape.norm == NormKind::rms && !shape.whole_row && random.coin();
  shape.v_norm = random.coin();
  if (random.coin()) shape.chunk = shape.window;
  shape.slopes = shape.soft_cap == 0 && random.coin();
  if (random.integer(0, 3) > 0) return shape;
  // Latent attention.
  shape.spec.kv_heads = 1;
  shape.q_heads = random.pick({1, 4, 16, 40, 64});
  shape.rope.rotary_dim = random.pick({8, 16, 64});
  shape.spec.values_in_keys = random.pick({32, 64, 96});
  if (random.coin()) {
    shape.q_heads = random.pick({1, 5});
    shape.spec.values_in_keys = random.pick({512, 960});
  }
  shape.spec.head_dim = shape.spec.values_in_keys + shape.rope.rotary_dim;
  if (random.coin() && shape.spec.dtype != DType::i8 && shape.spec.head_dim < 960) {
    shape.window = shape.chunk = 0;  // an indexer chooses among all
    shape.spec.index_dim = random.pick({8, 24, 64});
    shape.spec.head_dim += shape.spec.index_dim;
  }
  return shape;
}

// Adds a Hopper, which has a separate kernel for prompts: the emulator, or the device itself in builds with
// CUDA.
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
  // A shape whose cache format the backend has.
  Shape random_shape_of(Backend& backend, TestRandom& random) {
    for (;;) {
      Shape shape = random_shape(random);
      if (!backend.ops.supports(shape.spec, shape.q_heads)) continue;
      shape.distance_bias = !on_cuda() && shape.soft_cap == 0 && random.coin();
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
    const Shape shape = random_shape_of(tested, random);
    std::vector<int> lengths;
    for (int s = random.integer(1, 4); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 40 : 330));
    const Sequences sequences(shape, lengths, random);
    Runner got(tested, sequences);
    Runner expected(reference, sequences);
    got.run_in_random_steps(random, random.pick({1, 7, 200}));
    expected.run_alone();
    // Both backends round keys and values to the cache's format; only the tested one rounds probabilities. A
    // value halfway between two numbers of fp8 may become either, which affects few results.
    const bool halves = shape.spec.dtype != DType::f32 || shape.activation != DType::f32;
    const bool fp8 = shape.spec.dtype == DType::f8_e4m3;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const TestTensor& results = got.outputs[s];
      std::int64_t beyond = 0;
      for (std::int64_t i = 0; i < results.elements(); ++i) {
        const double wanted = expected.outputs[s][i];
        if (!(std::abs(results[i] - wanted) <= (halves ? 0.02 : 2e-5) + 0.01 * std::abs(wanted))) ++beyond;
      }
      ASSERT_LE(beyond, fp8 ? results.elements() / 100'000 : 0)
          << "round " << round << " head_dim " << shape.spec.head_dim << " kv " << name(shape.spec.dtype)
          << " act " << name(shape.activation) << " window " << shape.window << " length " << lengths[s];
    }
  }
}

// Rotary embeddings with an attention factor also scale heads, so norms after the rotation see the scaled
// heads.
TEST_P(AttentionOf, NormsBehindARotationSeeWhatItScales) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(16);
  for (const int rotary_dim : {64, 32}) {
    Shape shape{};
    shape.spec = {.kv_heads = 2, .head_dim = 64, .block_size = 16, .dtype = DType::f32};
    shape.q_heads = 4;
    shape.activation = DType::f32;
    shape.norm = NormKind::rms;
    shape.norm_turned = true;
    shape.rope.rotary_dim = rotary_dim;
    const Sequences sequences(shape, {20}, random);  // whose cosines and sines are any numbers
    Runner got(tested, sequences);
    Runner expected(reference, sequences);
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
    Shape shape = random_shape_of(tested, random);
    shape.causal = false;
    shape.spec.head_dim -= std::exchange(shape.spec.index_dim, 0);
    shape.chunk = 0;
    std::vector<int> lengths;
    for (int s = random.integer(1, 4); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 40 : 300));
    const Sequences sequences(shape, lengths, random);
    Runner together(tested, sequences);
    Runner alone(one, sequences, true);
    Runner expected(reference, sequences);
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
    const Shape shape = random_shape_of(one, random);
    std::vector<int> lengths;
    for (int s = random.integer(1, 5); s > 0; --s)
      lengths.push_back(random.integer(1, random.coin() ? 50 : GetParam().slow ? 300 : 1200));
    const Sequences sequences(shape, lengths, random);
    Runner alone(one, sequences, true);
    alone.run_alone();
    for (const int chunk : {1, 7, 64, 500}) {
      const int longest = *std::max_element(lengths.begin(), lengths.end());
      if (chunk == 1 && longest > (GetParam().slow ? 50 : 300)) continue;
      Runner chunked(four, sequences);
      chunked.run_in_random_steps(random, chunk);
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(chunked.outputs[s] == alone.outputs[s])
            << "round " << round << " sequence " << s << " of " << lengths.size() << ", chunks up to "
            << chunk;
    }
  }
}

// Shapes whose prompts use separate tiles on tensor cores.
std::vector<Shape> prompt_shapes() {
  std::vector<Shape> shapes;
  for (const int head_dim : {64, 128, 96})
    for (const DType dtype : {DType::bf16, DType::f16}) {
      Shape shape{};
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

// A row has the same bits in a prompt, in decoding and in any chunk. Chunks of up to 4 tokens fit a tile of
// decoding; larger ones have one or more wide tiles.
TEST_P(AttentionOf, PromptsHaveTheBitsOfDecoding) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(18);
  constexpr int kChunks[] = {4, 40, 200};
  const std::vector<Shape> shapes = prompt_shapes();
  const std::vector<int> lengths{long_tests() ? (GetParam().slow ? 270 : 700) : (GetParam().slow ? 150 : 260),
                                 60};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    // By default each emulated device has half of the shapes, with both formats.
    if (GetParam().slow && !long_tests() && (i + i / 2) % 2 == (GetParam().name == "hopper")) continue;
    const Shape& shape = shapes[i];
    const Sequences sequences(shape, lengths, random);
    Runner whole(tested, sequences), expected(reference, sequences);
    whole.run_alone();
    expected.run_alone();
    for (std::size_t s = 0; s < lengths.size(); ++s)
      ASSERT_LE(difference(whole.outputs[s], expected.outputs[s], 0.02, 0.01), 1)
          << "head_dim " << shape.spec.head_dim << " " << name(shape.activation);
    for (std::size_t c = 0; c < std::size(kChunks); ++c) {
      if (!long_tests() && i % std::size(kChunks) != c) continue;
      const int chunk = kChunks[c];
      Runner chunked(tested, sequences);
      chunked.run_in_random_steps(random, chunk);
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(chunked.outputs[s] == whole.outputs[s])
            << "head_dim " << shape.spec.head_dim << " " << name(shape.activation) << " sequence " << s
            << ", chunks up to " << chunk;
    }
  }
}

// DeepSeek-V2, V3 and V3.2, at their published sizes.
TEST_P(AttentionOf, LatentsOfPublishedSizes) {
  Backend tested = make(2);
  Backend reference = make_reference_backend();
  TestRandom random(17);
  for (const auto& [heads, index_dim, dtype, length] : {std::tuple{16, 0, DType::bf16, 140}, {128, 0, DType::bf16, 20},
                                                       {16, 0, DType::f8_e4m3, 40}, {64, 128, DType::bf16, 50}}) {
    Shape shape{};
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
    const Sequences sequences(shape, {tokens, 3}, random);
    Runner whole(tested, sequences), decoding(tested, sequences), expected(reference, sequences);
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
  if (on_cuda()) GTEST_SKIP() << "CUDA does not share prefixes";
  Backend one = make(1);
  Backend four = make(4);
  TestRandom random(13);
  for (int round = 0; round < rounds(12, 3); ++round) {
    Shape shape = random_shape_of(one, random);
    shape.spec.block_size = random.pick({16, 32, 64});
    // Nested prefixes, and one independent sequence.
    std::vector<int> lengths{1100, 1030, 900, 1000, 700, 600, 800};
    for (int& length : lengths) length += random.integer(0, 40);
    Sequences sequences(shape, lengths, random);
    sequences.share(1, 0, 1024);
    sequences.share(2, 0, 832);
    sequences.share(3, 0, 320);
    sequences.share(5, 4, 512);
    Runner alone(one, sequences, true);
    alone.run_alone();
    for (Backend* backend : {&one, &four}) {
      Runner together(*backend, sequences);
      std::vector<int> tokens;  // all but the last few; those then in one call
      for (const int length : lengths) tokens.push_back(length - 5);
      together.step(tokens);
      for (const int more : {1, 1, 2, 1}) together.step(std::vector<int>(lengths.size(), more));
      for (std::size_t s = 0; s < lengths.size(); ++s)
        ASSERT_TRUE(together.outputs[s] == alone.outputs[s]) << "round " << round << " sequence " << s;
    }
  }
}

// A token with overflowed values affects its own result and later ones, and no others.
TEST_P(AttentionOf, LaterValuesReachNoEarlierQuery) {
  Backend backend = make(2);
  TestRandom random(14);
  std::vector<Shape> shapes = prompt_shapes();
  for (int round = 0; round < rounds(12, 3); ++round) shapes.push_back(random_shape_of(backend, random));
  for (const Shape& shape : shapes) {
    const int length = random.integer(2, long_tests() ? 400 : 200);
    Sequences sequences(shape, {length}, random);
    Runner clean(backend, sequences);
    clean.run_alone();
    const int bad = random.integer(1, length - 1);
    const std::int64_t row = sequences.inputs[0].view().size(1);
    for (std::int64_t i = (bad + 1) * row - shape.spec.head_dim; i < (bad + 1) * row; ++i)
      sequences.inputs[0].set(i, random.pick({std::nanf(""), HUGE_VALF}));
    Runner spoilt(backend, sequences);
    spoilt.run_alone();
    ASSERT_TRUE(spoilt.outputs[0].rows(0, bad) == clean.outputs[0].rows(0, bad))
        << "head_dim " << shape.spec.head_dim << " token " << bad << " of " << length << " kv " << name(shape.spec.dtype);
    const std::int64_t last = std::int64_t{bad + 1} * shape.q_heads * shape.spec.value_dim() - 1;
    // The largest f8_e4m3 represents infinity, and sparse attention may not choose the query's own token.
    ASSERT_TRUE(shape.spec.dtype == DType::f8_e4m3 || shape.spec.index_dim > 0 ||
                !std::isfinite(spoilt.outputs[0][last]));
  }
}

}  // namespace
}  // namespace octavo
