// Operators on rows: norms, activations, KV cache writes, and sampling.
#include <numeric>
#include <vector>

#include "base/random.h"
#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kCalls = 64;  // per case: a single call is too short to time
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

void measure(const OpVisitor& visitor, OpCase&& c, const std::function<void()>& call) {
  if (!visitor.wanted(c)) return;
  c.run = [&] {
    for (int i = 0; i < c.calls; ++i) call();
  };
  visitor.measure(c);
}

Result<> token_cases(Backend& backend, const OpShapes& s, std::int64_t n, const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  const std::int64_t qkv = (s.q_heads + 2 * s.kv_heads) * s.head_dim;
  TRY(const Buffer residual, backend.device->allocate(size(n * s.dim) * sizeof(float)));
  TRY(const Buffer wide, backend.device->allocate(size(n * std::max(qkv, 2 * s.hidden)) * 2));
  TRY(const Buffer narrow,
      backend.device->allocate(size(n * std::max(s.q_heads * s.head_dim, s.hidden)) * 2));
  TRY(const Buffer weight, backend.device->allocate(size(s.dim) * sizeof(float)));
  measure(visitor, row_case(s, "add_norm", n, "bf16", static_cast<double>(n * s.dim) * 6), [&] {
    ops.add_norm(stream, {.residual = residual.view(DType::f32, {n, s.dim}),
                          .delta = narrow.view(DType::bf16, {n, s.dim}),
                          .norm = {NormKind::rms, 1e-5f, weight.view(DType::f32, {s.dim}), {}},
                          .out = wide.view(DType::bf16, {n, s.dim})});
  });
  measure(visitor, row_case(s, "activate silu", n, "bf16", static_cast<double>(n * s.hidden) * 10), [&] {
    ops.activate(stream, {.x = wide.view(DType::bf16, {n, 2 * s.hidden}),
                          .y = narrow.view(DType::bf16, {n, s.hidden})});
  });
  std::vector<std::int32_t> positions(size(n));
  std::iota(positions.begin(), positions.end(), 0);
  TRY(const Buffer position_memory, on_device(backend, positions));
  TRY(const Buffer id_memory, on_device(backend, positions));
  const View position = position_memory.view(DType::i32, {n}), ids = id_memory.view(DType::i32, {n});
  measure(visitor, row_case(s, "gather_rows", n, "f32", static_cast<double>(n * s.dim)), [&] {
    ops.gather_rows(stream, {.x = residual.view(DType::f32, {n, s.dim}),
                             .rows = position,
                             .out = wide.view(DType::f32, {n, s.dim})});
  });
  measure(visitor, row_case(s, "scale_rows", n, "bf16", static_cast<double>(n * s.dim)), [&] {
    ops.scale_rows(stream, {.x = narrow.view(DType::bf16, {n, s.dim}),
                            .factors = weight.view(DType::f32, {s.dim}),
                            .rows = position,
                            .y = wide.view(DType::bf16, {n, s.dim})});
  });
  measure(visitor, row_case(s, "clamp", n, "bf16", static_cast<double>(n * s.dim)), [&] {
    ops.clamp(stream, {.x = narrow.view(DType::bf16, {n, s.dim}),
                       .least = weight.view(DType::f32, {s.dim}),
                       .most = weight.view(DType::f32, {s.dim}),
                       .y = wide.view(DType::bf16, {n, s.dim})});
  });
  // One sequence with all tokens.
  TRY(const Buffer segment, on_device(backend, std::vector<std::int32_t>{0, static_cast<std::int32_t>(n)}));
  measure(visitor, row_case(s, "pool", n, "f32", static_cast<double>(n * s.dim)), [&] {
    ops.pool(stream, {.x = residual.view(DType::f32, {n, s.dim}),
                      .starts = segment.view(DType::i32, {2}),
                      .out = wide.view(DType::f32, {1, s.dim})});
  });
  measure(visitor, row_case(s, "add_rows", n, "bf16", static_cast<double>(n * s.dim)), [&] {
    ops.add_rows(stream, {.x = narrow.view(DType::bf16, {n, s.dim}),
                          .rows = position,
                          .y = wide.view(DType::bf16, {n, s.dim})});
  });
  measure(visitor, row_case(s, "put_sampled", n, "i32", static_cast<double>(n)), [&] {
    ops.put_sampled(stream, {.ids = ids, .tokens = position, .sampled = position, .rows = position});
  });
  // The table holds zeros; this does not change the cost of reads.
  std::vector<std::uint16_t> zeros(size(kTokens[3] * s.dim));
  const MatrixPart part{.values = View::of(zeros.data(), DType::bf16, {kTokens[3], s.dim})};
  TRY(const WeightPtr table, ops.prepare(*backend.device, {std::span(&part, 1), DType::bf16}));
  measure(visitor, row_case(s, "embed", n, "bf16", static_cast<double>(n * s.dim)), [&] {
    ops.embed(
        stream,
        {.ids = position, .table = *table, .positions = {}, .out = residual.view(DType::f32, {n, s.dim})});
  });
  const std::int64_t pairs = s.head_dim / 2;
  TRY(const Buffer cos_memory, backend.device->allocate(size(n * pairs) * sizeof(float)));
  TRY(const Buffer sin_memory, backend.device->allocate(size(n * pairs) * sizeof(float)));
  TRY(const Buffer frequencies, on_device(backend, std::vector<float>(size(pairs), 0.5f)));
  const View cos = cos_memory.view(DType::f32, {n, pairs}), sin = sin_memory.view(DType::f32, {n, pairs});
  measure(visitor, row_case(s, "angles", n, "f32", static_cast<double>(n * pairs) * 2), [&] {
    ops.angles(stream, {.positions = position,
                        .frequencies = frequencies.view(DType::f32, {pairs}),
                        .cos = cos,
                        .sin = sin});
  });
  std::vector<std::int64_t> slots(size(n));
  std::iota(slots.begin(), slots.end(), 0);
  TRY(const Buffer slot_memory, on_device(backend, slots));
  for (const DType cache : {DType::bf16, DType::f8_e4m3, DType::i8}) {
    const KvSpec spec{.kv_heads = static_cast<int>(s.kv_heads),
                      .head_dim = static_cast<int>(s.head_dim),
                      .block_size = 16,
                      .dtype = cache};
    if (!ops.supports(spec, static_cast<int>(s.q_heads))) continue;
    const std::int64_t blocks = (n + 15) / 16, block_bytes = ops.kv_block_bytes(spec);
    TRY(const Buffer pool, backend.device->allocate(size(blocks * block_bytes)));
    measure(visitor, row_case(s, "rope and store", n, name(cache), static_cast<double>(n * qkv) * 4), [&] {
      ops.qkv_store(stream, {.qkv = wide.view(DType::bf16, {n, qkv}),
                             .q_heads = static_cast<int>(s.q_heads),
                             .rope = {.cos = cos, .sin = sin, .rotary_dim = static_cast<int>(s.head_dim)},
                             .slots = slot_memory.view(DType::i64, {n}),
                             .cache = {static_cast<std::byte*>(pool.data()), blocks, block_bytes, spec},
                             .q_out = narrow.view(DType::bf16, {n, s.q_heads, s.head_dim})});
    });
  }
  return {};
}

struct Sampling {
  std::string_view name;
  float temperature;
  std::int32_t top_k;
  float top_p;
  std::int32_t top_counts;
};
constexpr Sampling kSamplings[] = {{"greedy", 0, 0, 1, -1},
                                   {"greedy, logprobs", 0, 0, 1, 0},
                                   {"drawn", 1, 0, 1, -1},
                                   {"top_k 50, top_p 0.9", 1, 50, 0.9f, -1},
                                   {"top_p 0.9", 1, 0, 0.9f, -1}};

}  // namespace

Result<> row_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const std::int64_t n : kTokens) TRY_VOID(token_cases(backend, shapes, n, visitor));
  return {};
}

Result<> sample_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  for (const std::int64_t n : {1, 16, 64}) {
    TRY(const Buffer logits, backend.device->allocate(size(n * shapes.vocab) * sizeof(float)));
    measure(visitor, row_case(shapes, "scale_logits", n, "f32", static_cast<double>(n * shapes.vocab)), [&] {
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
      // Roughly normal, like logits: the sum of four uniform numbers.
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
      TRY(const View temperature, of(how.temperature));
      TRY(const View top_p, of(how.top_p));
      TRY(const View min_p, of(0.0f));
      TRY(const View top_k, of(how.top_k));
      TRY(const View forced, of(std::int32_t{-1}));
      TRY(const View top_counts, of(how.top_counts));
      TRY(const View random, of(std::int64_t{0x123456789abcdef}));
      TRY(const View id, of(std::int32_t{0}));
      TRY(const View rank, of(std::int32_t{0}));
      TRY(const View logprob, of(0.0f));
      TRY_VOID(backend.ops.reserve_sampling(*backend.device, n, shapes.vocab));
      measure(visitor, std::move(c), [&] {
        backend.ops.sample(*backend.stream, {.logits = logits.view(DType::f32, {n, shapes.vocab}),
                                             .temperature = temperature,
                                             .top_k = top_k,
                                             .top_p = top_p,
                                             .min_p = min_p,
                                             .random = random,
                                             .forced = forced,
                                             .history = {},
                                             .history_counts = {},
                                             .repetition_penalty = {},
                                             .frequency_penalty = {},
                                             .presence_penalty = {},
                                             .bias = {},
                                             .bias_values = {},
                                             .mask_rows = {},
                                             .mask = {},
                                             .top_counts = top_counts,
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
