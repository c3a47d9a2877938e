// Random sequences, their inputs, and a runner that divides the work into steps, for tests of attention.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {

struct AttentionSetup {
  KvSpec spec;
  int q_heads;
  DType activation;
  int window;
  float soft_cap;
  bool sinks;
  Rope rope;
  NormKind norm;
  bool whole_row;
  bool norm_rotated = false;
  bool v_norm = false;
  int chunk = 0;
  bool slopes = false;
  bool causal = true;
  bool distance_bias = false;
  int fixed = 0;  // number of AttentionArgs::fixed_keys

  bool latent() const { return spec.values_in_keys > 0; }
};

// Sequences and their inputs. The KV blocks of the sequences are scattered over a pool, and unused blocks
// of the pool contain NaN.
class AttentionSequences {
 public:
  AttentionSequences(const AttentionSetup& of_shape, std::vector<int> of_lengths, TestRandom& random)
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
    fixed_keys = random.tensor(DType::f32, {shape.fixed, shape.spec.kv_heads, shape.spec.score_dim()});
    fixed_values = random.tensor(DType::f32, {shape.fixed, shape.spec.kv_heads, shape.spec.value_dim()});
    cos = random.tensor(DType::f32, {5000, angles});
    sin = random.tensor(DType::f32, {5000, angles});
  }
  // Makes sequence `s` begin with the first `tokens` tokens of sequence `with`, in the same blocks.
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

  AttentionSetup shape;
  std::vector<int> lengths;
  std::vector<TestTensor> inputs;
  std::vector<std::int32_t> tables;
  std::int64_t blocks_per_table = 0;
  std::int64_t blocks = 0;
  // Whether tables have no blocks before the window. A plan for several windows has all blocks.
  bool frees_blocks = true;
  TestTensor weights, cos, sin, sinks, slopes, distance_bias, fixed_keys, fixed_values;
};

// Runs sequences on one backend, with any number of tokens per step.
class AttentionRunner {
 public:
  // If whole_plan is true, the plan is made without the window.
  AttentionRunner(Backend& backend, const AttentionSequences& sequences, bool whole_plan = false)
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

  // Runs one step with tokens[s] more tokens of sequence s. Sequences with 0 tokens are not in the batch.
  void step(const std::vector<int>& tokens) {
    const AttentionSetup& shape = all_.shape;
    const Batch batch = batch_of(tokens);
    const auto n = static_cast<std::int64_t>(batch.positions.size());
    TestTensor qkv(shape.activation, {n, all_.inputs[0].view().size(1)});
    TestTensor q(shape.activation, {n, shape.q_heads, shape.spec.score_dim()});
    TestTensor out(shape.activation, {n, out_dim()});
    std::int64_t row = 0;
    each_token(tokens, [&](std::size_t s, int t) { copy_row(all_.inputs[s], t, qkv, row++); });
    IndexInputs index = index_inputs(tokens, n);

    OnDevice on(backend_);
    const std::int64_t pairs = all_.cos.view().size(1);
    TestTensor cos(DType::f32, {n, pairs}), sin(DType::f32, {n, pairs});
    for (std::int64_t i = 0; i < n; ++i) {
      copy_row(all_.cos, batch.positions[static_cast<std::size_t>(i)], cos, i);
      copy_row(all_.sin, batch.positions[static_cast<std::size_t>(i)], sin, i);
    }
    Rope rope = shape.rope;
    rope.cos = on(cos.view());
    rope.sin = on(sin.view());
    const View slots = on(View::of(std::span(batch.slots)));
    TestTensor kv(DType::f32, {n, shape.spec.score_dim()});  // latent attention: keys of the step's tokens
    shape.latent() ? store_latents(on, qkv, kv, q, index, rope, slots) : store_heads(on, qkv, q, rope, slots);
    attend(on, batch, q, index, out);
    on.fetch();
    row = 0;
    each_token(tokens, [&](std::size_t s, int t) { copy_row(out, row++, outputs[s], t); });
    for (std::size_t s = 0; s < tokens.size(); ++s) done_[s] += tokens[s];
  }

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

  std::vector<TestTensor> outputs;

 private:
  struct Batch {
    std::vector<std::int32_t> starts{0}, lengths{}, table{}, positions{};
    std::vector<std::int64_t> slots{};
  };
  Batch batch_of(const std::vector<int>& tokens) const {
    const AttentionSetup& shape = all_.shape;
    Batch batch;
    for (std::size_t s = 0; s < tokens.size(); ++s) {
      if (tokens[s] == 0) continue;
      const auto block_of = [&](std::int64_t b) {
        return all_.tables[s * static_cast<std::size_t>(all_.blocks_per_table) + static_cast<std::size_t>(b)];
      };
      for (int t = done_[s]; t < done_[s] + tokens[s]; ++t) {
        batch.positions.push_back(t);
        batch.slots.push_back(std::int64_t{block_of(t / shape.spec.block_size)} * shape.spec.block_size +
                              t % shape.spec.block_size);
      }
      batch.starts.push_back(static_cast<std::int32_t>(batch.positions.size()));
      batch.lengths.push_back(done_[s] + tokens[s]);
      for (std::int64_t b = 0; b < all_.blocks_per_table; ++b) {
        const bool left = all_.frees_blocks && shape.window > 0 &&
                          (b + 1) * shape.spec.block_size <= done_[s] - shape.window + 1;
        batch.table.push_back(left ? -1 : block_of(b));
      }
    }
    return batch;
  }

  // Inputs of an indexer: small integers, so that scores are exact and often equal.
  struct IndexInputs {
    TestTensor keys, weights, q, chosen;
  };
  IndexInputs index_inputs(const std::vector<int>& tokens, std::int64_t n) {
    const DType activation = all_.shape.activation;
    const std::int64_t size = all_.shape.spec.index_dim;
    IndexInputs index{TestTensor(activation, {n, size}), TestTensor(DType::f32, {n, kIndexHeads}),
                      TestTensor(activation, {n, kIndexHeads, size}), TestTensor(DType::f32, {n, kChosen})};
    std::int64_t row = 0;
    each_token(tokens, [&](std::size_t, int t) {
      const auto fill = [&](TestTensor& tensor, std::int64_t count, unsigned kind) {
        for (std::int64_t i = 0; i < count; ++i)
          tensor.set(row * count + i,
                     whole_number(static_cast<unsigned>(t), static_cast<unsigned>(i) * 4 + kind));
      };
      fill(index.keys, size, 0);
      fill(index.q, kIndexHeads * size, 1);
      fill(index.weights, kIndexHeads, 2);
      ++row;
    });
    return index;
  }

  void store_latents(OnDevice& on, const TestTensor& qkv, TestTensor& kv, TestTensor& q, IndexInputs& index,
                     const Rope& rope, const View& slots) {
    const std::int64_t key_dim = kv.view().size(1), width = qkv.view().size(1);
    for (std::int64_t i = 0; i < kv.view().size(0); ++i) {
      for (std::int64_t d = 0; d < dim(); ++d) q.set(i * dim() + d, qkv[i * width + d]);
      for (std::int64_t d = 0; d < key_dim; ++d) kv.set(i * key_dim + d, qkv[i * width + dim() + d]);
    }
    const View weight = View::of(on(all_.weights.view()).data, DType::f32, {all_.shape.spec.values_in_keys});
    backend_.ops.latent_store(*backend_.stream,
                              {.kv = on(kv.view()),
                               .index_keys = all_.shape.spec.index_dim > 0 ? on(index.keys.view()) : View{},
                               .norm = {NormKind::rms, 1e-6f, weight, {}},
                               .rope = rope,
                               .slots = slots,
                               .cache = cache_,
                               .q = on(q.view()),
                               .q_out = on(q.view())});
  }

  void store_heads(OnDevice& on, TestTensor& qkv, TestTensor& q, const Rope& rope, const View& slots) {
    const AttentionSetup& shape = all_.shape;
    const auto norm = [&](int heads) {
      const std::int64_t size = shape.whole_row ? heads * shape.spec.head_dim : shape.spec.head_dim;
      const View w = all_.weights.view();
      return Norm{shape.norm, 1e-6f, View::of(on(w).row<float>(0), DType::f32, {size}), {}};
    };
    backend_.ops.qkv_store(*backend_.stream, {.qkv = on(qkv.view()),
                                              .q_heads = shape.q_heads,
                                              .q_norm = norm(shape.q_heads),
                                              .k_norm = norm(shape.spec.kv_heads),
                                              .norm_whole_row = shape.whole_row,
                                              .norm_rotated = shape.norm_rotated,
                                              .v_norm = shape.v_norm ? norm(1) : Norm{},
                                              .rope = rope,
                                              .slots = slots,
                                              .cache = cache_,
                                              .q_out = on(q.view())});
  }

  void attend(OnDevice& on, const Batch& batch, TestTensor& q, IndexInputs& index, TestTensor& out) {
    const AttentionSetup& shape = all_.shape;
    backend_.ops.plan_attention(*backend_.stream,
                                {batch.starts, batch.lengths, batch.table, all_.blocks_per_table}, *plan_);
    const bool indexed = shape.spec.index_dim > 0;
    View seen = indexed ? index.chosen.view() : View{};
    seen.dtype = DType::i32;
    if (indexed)
      backend_.ops.choose_tokens(*backend_.stream, {.q = on(index.q.view()),
                                                    .weights = on(index.weights.view()),
                                                    .cache = cache_,
                                                    .plan = *plan_,
                                                    .chosen = on(seen)});
    backend_.ops.attention(*backend_.stream,
                           {.q = on(q.view()),
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
                            .fixed_keys = shape.fixed > 0 ? on(all_.fixed_keys.view()) : View{},
                            .fixed_values = shape.fixed > 0 ? on(all_.fixed_values.view()) : View{},
                            .chosen = indexed ? on(seen) : View{},
                            .out = on(out.view())});
  }

  static constexpr int kIndexHeads = 7, kChosen = 40;
  static float whole_number(unsigned token, unsigned element_index) {
    unsigned mixed = token * 40503 + element_index * 2654435761U;
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
  const AttentionSequences& all_;
  Buffer pool_;
  KvLayer cache_;
  std::unique_ptr<AttentionPlan> plan_;
  std::vector<int> done_;
};

inline AttentionSetup random_attention(TestRandom& random) {
  AttentionSetup shape{};
  shape.spec.kv_heads = random.integer(1, 3);
  shape.spec.head_dim = random.pick({8, 16, 24, 40, 64, 80, 96, 128, 256, 512, 768});
  shape.spec.block_size = random.pick({16, 32, 64});
  shape.spec.dtype =
      random.pick({DType::f32, DType::bf16, DType::bf16, DType::f16, DType::f8_e4m3, DType::i8, DType::i4});
  shape.q_heads = shape.spec.kv_heads * random.pick({1, 2, 4, 5, 8});
  shape.activation = random.pick({DType::f32, DType::bf16, DType::f16});
  shape.window = random.pick({0, 0, 1, 20, 100, 300});
  shape.soft_cap = random.pick({0.0f, 0.0f, 5.0f});
  shape.sinks = random.coin();
  shape.norm = random.pick({NormKind::none, NormKind::rms, NormKind::layer});
  shape.whole_row = random.coin();
  shape.rope.interleaved = random.coin();
  shape.rope.rotary_dim = random.pick({0, shape.spec.head_dim, shape.spec.head_dim / 2});
  shape.norm_rotated = shape.norm == NormKind::rms && !shape.whole_row && random.coin();
  shape.v_norm = random.coin();
  if (random.coin()) shape.chunk = shape.window;
  shape.slopes = shape.soft_cap == 0 && random.coin();
  if (random.integer(0, 3) > 0) return shape;
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
    shape.window = shape.chunk = 0;  // An indexer selects among all tokens.
    shape.spec.index_dim = random.pick({8, 24, 64});
    shape.spec.head_dim += shape.spec.index_dim;
  }
  return shape;
}

}  // namespace octavo
