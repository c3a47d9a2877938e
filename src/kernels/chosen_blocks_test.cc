// Tests attention to selected blocks of tokens: the selection, and attention to the selected blocks. Every
// backend is compared with the reference, and with itself for any division of a sequence.
#include <gtest/gtest.h>

#include "kernels/testing/backends.h"
#include "kernels/testing/tensors.h"

namespace octavo {
namespace {

constexpr int kCacheBlock = 16;

class ChosenBlocks : public BesideTheReference {};

INSTANTIATE_TEST_SUITE_P(Backends, ChosenBlocks, testing::ValuesIn(test_backends()), test_backend_name);

// A sequence of n tokens. A block of the selection has `block` tokens.
struct Sparse {
  std::int64_t n, kv_heads, group, dim, index_dim, most;
  int block, local;
  DType dtype;

  explicit Sparse(TestRandom& random)
      : n(random.integer(1, 400)),
        kv_heads(random.integer(1, 3)),
        group(random.integer(1, 5)),
        dim(8 * random.integer(1, 5)),
        index_dim(8 * random.integer(1, 5)),
        most(random.integer(1, 6)),
        block(random.pick({16, 32, 64})),
        local(random.integer(1, static_cast<int>(most))),
        dtype(random.pick({DType::f32, DType::i4})) {}
  std::int64_t q_heads() const { return kv_heads * group; }
};

// Keys and values of all tokens, in the memory of a backend.
struct TokenCache {
  Buffer memory;
  KvLayer layer;
  std::unique_ptr<AttentionPlan> plan;

  TokenCache(Backend& backend, const KvSpec& spec, std::int64_t n, std::int64_t q_heads) {
    const std::int64_t blocks = (n + kCacheBlock - 1) / kCacheBlock, bytes = backend.ops.kv_block_bytes(spec);
    memory = backend.device->allocate(static_cast<std::size_t>(blocks * bytes)).value();
    layer = {static_cast<std::byte*>(memory.data()), blocks, bytes, spec};
    plan = backend.ops
               .make_attention_plan(*backend.device, {.max_tokens = int(n),
                                                      .max_sequences = 1,
                                                      .max_length = int(n),
                                                      .q_heads = int(q_heads),
                                                      .kv = spec})
               .value();
  }
};

struct Selected {
  TestTensor chosen, out;
  bool operator==(const Selected&) const = default;
};

// Processes the sequence in steps of `at_once` tokens.
Selected run(Backend& backend, const Sparse& s, const TestTensor& qkv, const TestTensor& index_qkv,
             std::int64_t at_once) {
  const auto spec_of = [&](std::int64_t heads, std::int64_t dim) {
    return KvSpec{.kv_heads = int(heads), .head_dim = int(dim), .block_size = kCacheBlock, .dtype = s.dtype};
  };
  TokenCache cache(backend, spec_of(s.kv_heads, s.dim), s.n, s.q_heads()),
      index(backend, spec_of(1, s.index_dim), s.n, s.kv_heads);
  Selected result{TestTensor(DType::i32, {s.n, s.kv_heads, s.most}),
                  TestTensor(DType::f32, {s.n, s.q_heads() * s.dim})};
  std::vector<std::int32_t> table;
  for (std::int64_t i = cache.layer.blocks; i-- > 0;) table.push_back(static_cast<std::int32_t>(i));
  for (std::int64_t first = 0; first < s.n; first += at_once) {
    const std::int64_t count = std::min(at_once, s.n - first);
    const std::int32_t query_starts[] = {0, static_cast<std::int32_t>(count)},
                       length = static_cast<std::int32_t>(first + count);
    TestTensor slots(DType::i64, {count});
    for (std::int64_t t = first; t < first + count; ++t)
      reinterpret_cast<std::int64_t*>(slots.data())[t - first] =
          table[static_cast<std::size_t>(t / kCacheBlock)] * std::int64_t{kCacheBlock} + t % kCacheBlock;
    const TestTensor q(DType::f32, {count, s.q_heads(), s.dim}),
        index_q(DType::f32, {count, s.kv_heads, s.index_dim});
    OnDevice on(backend);
    const auto store = [&](TokenCache& to, const TestTensor& rows, std::int64_t heads,
                           const TestTensor& queries) {
      backend.ops.plan_attention(*backend.stream,
                                 {.query_starts = query_starts,
                                  .lengths = {&length, 1},
                                  .block_tables = table,
                                  .table_stride = std::ssize(table)},
                                 *to.plan);
      backend.ops.qkv_store(*backend.stream, {.qkv = on(rows.view().rows(first, count)),
                                              .q_heads = int(heads),
                                              .slots = on(slots.view()),
                                              .cache = to.layer,
                                              .q_out = on(queries.view())});
    };
    store(cache, qkv, s.q_heads(), q);
    store(index, index_qkv, s.kv_heads, index_q);
    const View chosen = on(result.chosen.view().rows(first, count));
    backend.ops.choose_blocks(*backend.stream, {.q = on(index_q.view()),
                                                .cache = index.layer,
                                                .plan = *index.plan,
                                                .block = s.block,
                                                .local = s.local,
                                                .chosen = chosen});
    backend.ops.attention(*backend.stream, {.q = on(q.view()),
                                            .cache = cache.layer,
                                            .plan = *cache.plan,
                                            .scale = 0.4F,
                                            .chosen = chosen,
                                            .chosen_tokens = s.block,
                                            .out = on(result.out.view().rows(first, count))});
    on.fetch();
  }
  return result;
}

TEST_P(ChosenBlocks, AreThoseOfTheReferenceHoweverASequenceIsCut) {
  TestRandom random(9);
  for (int round = 0; round < (GetParam().slow ? 6 : 20); ++round) {
    const Sparse s(random);
    const TestTensor qkv = random.tensor(DType::f32, {s.n, (s.q_heads() + 2 * s.kv_heads) * s.dim}),
                     index_qkv = random.tensor(DType::f32, {s.n, (s.kv_heads + 2) * s.index_dim});
    const Selected together = run(*tested, s, qkv, index_qkv, s.n),
                   expected = run(reference, s, qkv, index_qkv, s.n);
    ASSERT_TRUE(together.chosen == expected.chosen) << s.n << " tokens, blocks of " << s.block;
    ASSERT_LE(difference(together.out, expected.out, 2e-5, 1e-4), 1)
        << s.n << " tokens, blocks of " << s.block;
    ASSERT_TRUE(run(*tested, s, qkv, index_qkv, 37) == together) << s.n << " tokens, blocks of " << s.block;
  }
}

}  // namespace
}  // namespace octavo
