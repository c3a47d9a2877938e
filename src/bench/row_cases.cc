// Cases of `octavo bench ops` for operators on rows: norms, activations, KV cache writes, sampling.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kCalls = 64;  // a single call is too short to time
constexpr std::int64_t kTokens[] = {1, 16, 64, 512};

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

OpCase row_case(const OpShapes& shapes, std::string_view operation, std::int64_t n, std::string_view format,
                double operations) {
  return {.operation = fmt::format("{} {}", operation, shapes.name),
          .shape = fmt::format("{} rows", n),
          .format = std::string(format),
          .calls = kCalls,
          .bytes = 0,
          .operations = operations};
}

struct Rows {
  Backend& backend;
  const OpShapes& s;
  std::int64_t n;
  const OpVisitor& visitor;
  Buffer residual{}, wide{}, narrow{}, weight{}, positions{};

  std::int64_t qkv() const { return (s.q_heads + 2 * s.kv_heads) * s.head_dim; }
  View f32_rows(const Buffer& buffer) const { return buffer.view(DType::f32, {n, s.dim}); }
  View rows(const Buffer& buffer) const { return buffer.view(DType::bf16, {n, s.dim}); }
  View weights() const { return weight.view(DType::f32, {s.dim}); }
  View position() const { return positions.view(DType::i32, {n}); }

  // Measures `call`, which computes `numbers` elements per row with `operations` operations per element.
  void run(std::string_view operation, std::string_view format, std::int64_t numbers, double operations,
           const std::function<void()>& call) const {
    visitor.measure_calls(row_case(s, operation, n, format, static_cast<double>(n * numbers) * operations),
                          call);
  }
};

Result<Rows> rows_of(Backend& backend, const OpShapes& s, std::int64_t n, const OpVisitor& visitor) {
  Rows made{.backend = backend, .s = s, .n = n, .visitor = visitor};
  const auto bytes = [&](std::int64_t numbers, std::size_t each) {
    return backend.device->allocate(size(numbers) * each);
  };
  TRY(made.residual, bytes(n * s.dim, sizeof(float)));
  TRY(made.wide, bytes(n * std::max(made.qkv(), 2 * s.hidden), 2));
  TRY(made.narrow, bytes(n * std::max(s.q_heads * s.head_dim, s.hidden), 2));
  TRY(made.weight, bytes(s.dim, sizeof(float)));
  std::vector<std::int32_t> positions(size(n));
  std::iota(positions.begin(), positions.end(), 0);
  TRY(made.positions, on_device(backend, positions));
  return made;
}

void norm_cases(const Rows& r) {
  const Ops& ops = r.backend.ops;
  Stream& stream = *r.backend.stream;
  const std::int64_t hidden = r.s.hidden, n = r.n;
  r.run("add_norm", "bf16", r.s.dim, 6, [&] {
    ops.add_norm(stream, {.residual = r.f32_rows(r.residual),
                          .delta = r.rows(r.narrow),
                          .norm = {NormKind::rms, 1e-5f, r.weights(), {}},
                          .out = r.rows(r.wide)});
  });
  r.run("activate silu", "bf16", hidden, 10, [&] {
    ops.activate(stream, {.x = r.wide.view(DType::bf16, {n, 2 * hidden}),
                          .y = r.narrow.view(DType::bf16, {n, hidden})});
  });
}

Result<> copy_cases(const Rows& r) {
  const Ops& ops = r.backend.ops;
  Stream& stream = *r.backend.stream;
  const std::int64_t dim = r.s.dim;
  const View position = r.position();
  r.run("gather_rows", "f32", dim, 1, [&] {
    ops.gather_rows(stream, {.x = r.f32_rows(r.residual), .rows = position, .out = r.f32_rows(r.wide)});
  });
  r.run("scale_rows", "bf16", dim, 1, [&] {
    ops.scale_rows(stream,
                   {.x = r.rows(r.narrow), .factors = r.weights(), .rows = position, .y = r.rows(r.wide)});
  });
  r.run("clamp", "bf16", dim, 1, [&] {
    ops.clamp(stream,
              {.x = r.rows(r.narrow), .least = r.weights(), .most = r.weights(), .y = r.rows(r.wide)});
  });
  r.run("softmax", "bf16", dim, 1,
        [&] { ops.softmax(stream, {.x = r.rows(r.narrow), .y = r.rows(r.wide)}); });
  // All tokens belong to one sequence.
  TRY(const Buffer segment,
      on_device(r.backend, std::vector<std::int32_t>{0, static_cast<std::int32_t>(r.n)}));
  r.run("pool", "f32", dim, 1, [&] {
    ops.pool(stream, {.x = r.f32_rows(r.residual),
                      .starts = segment.view(DType::i32, {2}),
                      .out = r.wide.view(DType::f32, {1, dim})});
  });
  r.run("add_rows", "bf16", dim, 1,
        [&] { ops.add_rows(stream, {.x = r.rows(r.narrow), .rows = position, .y = r.rows(r.wide)}); });
  TRY(const Buffer id_memory, on_device(r.backend, std::vector<std::int32_t>(size(r.n), 0)));
  const View ids = id_memory.view(DType::i32, {r.n});
  r.run("put_sampled", "i32", 1, 1, [&] {
    ops.put_sampled(stream, {.ids = ids, .tokens = position, .sampled = position, .rows = position});
  });
  return {};
}

// Operators of a rank that has half of the rows of a table, or half of the heads.
void rank_cases(const Rows& r) {
  const Ops& ops = r.backend.ops;
  Stream& stream = *r.backend.stream;
  const OwnRows half{.first = 0, .count = static_cast<std::int32_t>((r.n + 1) / 2)};
  const View sums = r.wide.view(DType::f32, {r.n, 1});
  r.run("own_ids", "i32", 1, 1, [&] {
    ops.own_ids(stream, {.ids = r.position(), .rows = half, .own = r.narrow.view(DType::i32, {r.n})});
  });
  r.run("keep_own_rows", "f32", r.s.dim, 1,
        [&] { ops.keep_own_rows(stream, {.ids = r.position(), .rows = half, .x = r.f32_rows(r.residual)}); });
  r.run("sum_squares", "bf16", r.s.dim, 2,
        [&] { ops.sum_squares(stream, {.x = r.rows(r.narrow), .sums = sums}); });
  r.run("norm_by_squares", "bf16", r.s.dim, 2, [&] {
    ops.norm_by_squares(
        stream,
        {.x = r.rows(r.narrow), .sums = sums, .count = 2 * r.s.dim, .eps = 1e-5f, .weight = r.weights()});
  });
}

Result<> embed_case(const Rows& r) {
  // All values of the table are 0, because the values do not change the time.
  std::vector<std::uint16_t> zeros(size(kTokens[3] * r.s.dim));
  const MatrixPart part{.values = View::of(zeros.data(), DType::bf16, {kTokens[3], r.s.dim})};
  TRY(const WeightPtr table, r.backend.ops.prepare(*r.backend.device, {std::span(&part, 1), DType::bf16}));
  r.run("embed", "bf16", r.s.dim, 1, [&] {
    r.backend.ops.embed(
        *r.backend.stream,
        {.ids = r.position(), .table = *table, .positions = {}, .out = r.f32_rows(r.residual)});
  });
  return {};
}

Result<> store_cases(const Rows& r) {
  const Ops& ops = r.backend.ops;
  Stream& stream = *r.backend.stream;
  const OpShapes& s = r.s;
  const std::int64_t pairs = s.head_dim / 2, n = r.n;
  TRY(const Buffer cos_memory, r.backend.device->allocate(size(n * pairs) * sizeof(float)));
  TRY(const Buffer sin_memory, r.backend.device->allocate(size(n * pairs) * sizeof(float)));
  TRY(const Buffer frequencies, on_device(r.backend, std::vector<float>(size(pairs), 0.5f)));
  const View cos = cos_memory.view(DType::f32, {n, pairs}), sin = sin_memory.view(DType::f32, {n, pairs});
  r.run("angles", "f32", pairs, 2, [&] {
    ops.angles(stream, {.positions = r.position(),
                        .frequencies = frequencies.view(DType::f32, {pairs}),
                        .cos = cos,
                        .sin = sin});
  });
  std::vector<std::int64_t> slots(size(n));
  std::iota(slots.begin(), slots.end(), 0);
  TRY(const Buffer slot_memory, on_device(r.backend, slots));
  for (const DType cache : {DType::bf16, DType::f8_e4m3, DType::i8, DType::i4}) {
    const KvSpec spec{.kv_heads = static_cast<int>(s.kv_heads),
                      .head_dim = static_cast<int>(s.head_dim),
                      .block_size = 16,
                      .dtype = cache};
    if (!ops.supports(spec, static_cast<int>(s.q_heads))) continue;
    const std::int64_t blocks = (n + 15) / 16, block_bytes = ops.kv_block_bytes(spec);
    TRY(const Buffer pool, r.backend.device->allocate(size(blocks * block_bytes)));
    r.run("rope and store", name(cache), r.qkv(), 4, [&] {
      ops.qkv_store(stream, {.qkv = r.wide.view(DType::bf16, {n, r.qkv()}),
                             .q_heads = static_cast<int>(s.q_heads),
                             .rope = {.cos = cos, .sin = sin, .rotary_dim = static_cast<int>(s.head_dim)},
                             .slots = slot_memory.view(DType::i64, {n}),
                             .cache = {static_cast<std::byte*>(pool.data()), blocks, block_bytes, spec},
                             .q_out = r.narrow.view(DType::bf16, {n, s.q_heads, s.head_dim})});
    });
  }
  return {};
}

struct Sampling {
  std::string_view name;
  float temperature;
  std::int32_t top_k;
  float top_p;
  std::int32_t top_count;
};
constexpr Sampling kSamplings[] = {{"greedy", 0, 0, 1, -1},
                                   {"greedy, logprobs", 0, 0, 1, 0},
                                   {"drawn", 1, 0, 1, -1},
                                   {"top_k 50, top_p 0.9", 1, 50, 0.9f, -1},
                                   {"top_p 0.9", 1, 0, 0.9f, -1}};

}  // namespace

Result<> row_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const std::int64_t n : kTokens) {
    TRY(const Rows rows, rows_of(backend, shapes, n, visitor));
    norm_cases(rows);
    TRY_VOID(copy_cases(rows));
    rank_cases(rows);
    TRY_VOID(embed_case(rows));
    TRY_VOID(store_cases(rows));
  }
  return {};
}

Result<> sample_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const std::int64_t n : {1, 16, 64}) {
    TRY(const Buffer logits, backend.device->allocate(size(n * shapes.vocab) * sizeof(float)));
    visitor.measure_calls(
        row_case(shapes, "scale_logits", n, "f32", static_cast<double>(n * shapes.vocab)), [&] {
          backend.ops.scale_logits(*backend.stream,
                                   {.logits = logits.view(DType::f32, {n, shapes.vocab}), .scale = 0.5f});
        });
  }
  for (const std::int64_t n : {1, 16, 64})
    for (const Sampling& how : kSamplings) {
      const std::int64_t count = n * shapes.vocab;
      OpCase c = row_case(shapes, fmt::format("sample {}", how.name), n, "f32", static_cast<double>(count));
      if (!visitor.wanted(c)) continue;
      c.calls = 4;
      std::vector<float> normal(size(count));
      // Like logits, the numbers are nearly normally distributed: sums of four uniform numbers.
      for (std::int64_t i = 0; i < count; ++i) {
        float sum = 0;
        const std::uint64_t bits = random_bits(7, static_cast<std::uint64_t>(i));
        for (int part = 0; part < 64; part += 16) sum += static_cast<float>(bits >> part & 0xffff) / 65536;
        normal[size(i)] = (sum - 2) * 6;
      }
      TRY(const Buffer logits, on_device(backend, normal));
      std::vector<Buffer> arrays;
      const auto of = [&](auto value) -> Result<View> {
        TRY(Buffer array, on_device(backend, std::vector<decltype(value)>(size(n), value)));
        return arrays.emplace_back(std::move(array)).view(dtype_of<decltype(value)>, {n});
      };
      const DrawRule rule{.random = 0x123456789abcdef,
                          .temperature = how.temperature,
                          .top_p = how.top_p,
                          .top_k = how.top_k,
                          .top_count = how.top_count};
      TRY(const Buffer rules, on_device(backend, std::vector(size(n), rule)));
      TRY(const View id, of(std::int32_t{0}));
      TRY(const View rank, of(std::int32_t{0}));
      TRY(const View logprob, of(0.0f));
      TRY_VOID(backend.ops.reserve_sampling(*backend.device, n, shapes.vocab));
      visitor.measure_calls(std::move(c), [&] {
        backend.ops.sample(*backend.stream, {.logits = logits.view(DType::f32, {n, shapes.vocab}),
                                             .rules = rules.view(DType::u8, {n, sizeof(DrawRule)}),
                                             .history = {},
                                             .history_counts = {},
                                             .bias = {},
                                             .bias_values = {},
                                             .mask = {},
                                             .reported = {},
                                             .out_id = id,
                                             .out_logprob = logprob,
                                             .out_rank = rank,
                                             .out_top_ids = {},
                                             .out_top_logprobs = {}});
      });
    }
  return {};
}

}  // namespace octavo
