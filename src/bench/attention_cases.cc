// Cases of `octavo bench ops` for attention over KV blocks: decoding with short and long contexts, prompts,
// and sequences with a common prefix. Also latent attention, and the selection of tokens for sparse
// attention.
#include <algorithm>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr int kBlockSize = 16;
constexpr int kIndexHeads = 64, kIndexDim = 128, kChosen = 2048;  // values of DeepSeek-V3.2

struct Contexts {
  std::string_view name;
  int sequences, queries, length;
  int window = 0;            // sliding window in tokens; 0: full attention
  int shared = 0;            // tokens in the prefix whose blocks all sequences share
  bool device_only = false;  // true: too large for the host's memory
};
constexpr Contexts kContexts[] = {{"decode", 1, 1, 32},
                                  {"decode", 16, 1, 32},
                                  {"decode", 1, 1, 4096},
                                  {"decode", 16, 1, 4096},
                                  {"decode", 16, 1, 2112},
                                  {"decode shared", 16, 1, 2112, 0, 2000},
                                  {"decode", 64, 1, 4096, 0, 0, true},
                                  {"decode windowed", 1, 1, 131072, 1024},
                                  {"prefill", 1, 512, 512},
                                  {"prefill", 1, 512, 4096},
                                  {"prefill", 1, 4096, 4096},
                                  {"prefill windowed", 1, 512, 131072, 1024}};

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

struct Blocks {
  int per_sequence;
  int freed;  // blocks of a sequence that are before its window and therefore free
  int shared;
  int all;

  explicit Blocks(const Contexts& x)
      : per_sequence(x.length / kBlockSize),
        freed((x.length - (x.window > 0 ? std::min(x.length, x.window + x.queries - 1) : x.length)) /
              kBlockSize),
        shared(x.shared / kBlockSize),
        all((per_sequence - freed) * x.sequences) {}

  // Returns a block table whose blocks are not in memory order, as in a server that has run for some time.
  std::vector<std::int32_t> table(int sequences) const {
    std::vector<std::int32_t> entries;
    int next = all;
    for (int i = 0; i < per_sequence * sequences; ++i) {
      const int in_sequence = i % per_sequence;
      const bool copied = i >= per_sequence && in_sequence < shared;
      entries.push_back(in_sequence < freed ? -1 : copied ? entries[size(in_sequence)] : --next);
    }
    return entries;
  }
};

// If the cache has keys of an indexer, the case measures only the selection of tokens.
OpCase case_of(const OpShapes& s, std::string_view kind, const KvSpec& spec, const Contexts& x,
               const Blocks& blocks, std::int64_t block_bytes) {
  // A query of a head reads the keys and values of all tokens up to its position, with two operations per
  // element.
  const double met = static_cast<double>(std::int64_t{x.sequences} * x.queries) *
                     (x.window > 0 ? x.window : x.length - (x.queries - 1) / 2.0);
  return {
      .operation = fmt::format("{} {} {}", kind, s.name, x.name),
      .shape = fmt::format("{} x {} of {}", x.sequences, x.queries, x.length),
      .format = std::string(name(spec.dtype)),
      .calls = 1,
      .bytes = static_cast<double>((blocks.all - blocks.shared * (x.sequences - 1)) * block_bytes) *
               (spec.index_dim > 0 ? spec.index_dim / static_cast<double>(spec.head_dim) : 1.0),
      .operations = 2 * met *
                    static_cast<double>(spec.index_dim > 0 ? kIndexHeads * kIndexDim
                                                           : s.q_heads * (spec.head_dim + spec.value_dim())),
      .arithmetic = Arithmetic::bf16};
}

Result<> attention_case(Backend& backend, const OpShapes& s, std::string_view kind, const KvSpec& spec,
                        const Contexts& x, const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  if (x.device_only && backend.device->shares_host_memory()) return {};
  if (!ops.supports(spec, static_cast<int>(s.q_heads))) return {};
  const Blocks blocks(x);
  const std::int64_t block_bytes = ops.kv_block_bytes(spec);
  const std::int64_t n = std::int64_t{x.sequences} * x.queries;
  OpCase c = case_of(s, kind, spec, x, blocks, block_bytes);
  if (!visitor.wanted(c)) return {};
  // A single call with many queries takes long enough for the host's clock.
  const bool once = x.queries > 1 && !backend.stream->asynchronous();
  c.calls = once ? 1 : static_cast<int>(std::clamp(visitor.cold_bytes / c.bytes, 1.0, 256.0));

  std::vector<Buffer> layers;
  for (int i = 0; i < c.calls; ++i) {
    TRY(Buffer layer, on_device(backend, std::vector<std::uint8_t>(size(blocks.all * block_bytes))));
    layers.push_back(std::move(layer));
  }
  TRY(const auto plan, ops.make_attention_plan(*backend.device, {.max_tokens = static_cast<int>(n),
                                                                 .max_sequences = x.sequences,
                                                                 .max_length = x.length,
                                                                 .q_heads = static_cast<int>(s.q_heads),
                                                                 .kv = spec,
                                                                 .window = x.window}));
  std::vector<std::int32_t> starts;
  for (int i = 0; i <= x.sequences; ++i) starts.push_back(i * x.queries);
  const std::vector<std::int32_t> lengths(size(x.sequences), x.length), table = blocks.table(x.sequences);
  const std::int64_t width = s.q_heads * spec.value_dim();
  TRY(const Buffer q, backend.device->allocate(size(n * s.q_heads * spec.head_dim) * 2));
  TRY(const Buffer out, backend.device->allocate(size(n * width) * 2));
  TRY(const Buffer index_q, backend.device->allocate(size(n * kIndexHeads * kIndexDim) * 2));
  TRY(const Buffer weights, backend.device->allocate(size(n * kIndexHeads) * 4));
  TRY(const Buffer chosen, backend.device->allocate(size(n * kChosen) * 4));
  c.run = [&] {
    ops.plan_attention(*backend.stream, {starts, lengths, table, blocks.per_sequence}, *plan);
    for (const Buffer& layer : layers) {
      const KvLayer cache{static_cast<std::byte*>(layer.data()), blocks.all, block_bytes, spec};
      if (spec.index_dim > 0) {
        ops.choose_tokens(*backend.stream, {.q = index_q.view(DType::bf16, {n, kIndexHeads, kIndexDim}),
                                            .weights = weights.view(DType::f32, {n, kIndexHeads}),
                                            .cache = cache,
                                            .plan = *plan,
                                            .chosen = chosen.view(DType::i32, {n, kChosen})});
        continue;
      }
      ops.attention(*backend.stream, {.q = q.view(DType::bf16, {n, s.q_heads, spec.head_dim}),
                                      .cache = cache,
                                      .plan = *plan,
                                      .scale = 0.125f,
                                      .window = x.window,
                                      .out = out.view(DType::bf16, {n, width})});
    }
  };
  visitor.measure(c);
  return {};
}

}  // namespace

Result<> attention_cases(Backend& backend, const OpShapes& shapes, const OpVisitor& visitor) {
  KvSpec spec{.kv_heads = static_cast<int>(shapes.kv_heads),
              .head_dim = static_cast<int>(shapes.head_dim),
              .block_size = kBlockSize};
  for (const Contexts& contexts : kContexts)
    for (const DType cache : {DType::bf16, DType::f8_e4m3, DType::i8, DType::i4}) {
      spec.dtype = cache;
      TRY_VOID(attention_case(backend, shapes, "attention", spec, contexts, visitor));
    }
  spec = {.kv_heads = 1,
          .head_dim = kLatent + kRotary,
          .block_size = kBlockSize,
          .dtype = DType::bf16,
          .values_in_keys = kLatent};
  for (const Contexts& contexts : kContexts)
    if (contexts.window == 0)
      TRY_VOID(attention_case(backend, shapes, "latent attention", spec, contexts, visitor));
  spec.head_dim += spec.index_dim = kIndexDim;
  for (const Contexts& contexts : kContexts)
    if (contexts.queries == 1 && contexts.length == 4096 && !contexts.device_only)
      TRY_VOID(attention_case(backend, shapes, "choose_tokens", spec, contexts, visitor));
  return {};
}

}  // namespace octavo
