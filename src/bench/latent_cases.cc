// Cases of `octavo bench ops` for latent attention: the product of each head with its matrix, and the write
// to the KV cache.
#include <numeric>
#include <vector>

#include "bench/op_cases.h"

namespace octavo {
namespace {

constexpr std::int64_t kTokens[] = {1, 16, 512};
constexpr int kBlockSize = 16;

OpCase latent_case(const OpShapes& shapes, std::string_view operation, std::int64_t n) {
  return {.operation = fmt::format("{} {}", operation, shapes.name),
          .shape = fmt::format("{} tokens, {} heads", n, shapes.q_heads),
          .format = "bf16",
          .calls = 16,  // a single call is too short to time
          .bytes = 0,
          .operations = 0,
          .arithmetic = Arithmetic::bf16};
}

Result<> token_cases(Backend& backend, const OpShapes& s, std::int64_t n, const Weight& up,
                     const OpVisitor& visitor) {
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
  constexpr std::int64_t kKey = kLatent + kRotary, kQuery = kLatentHead + kRotary;
  const auto zeros = [&](std::int64_t bytes) {
    return on_device(backend, std::vector<std::uint8_t>(static_cast<std::size_t>(bytes)));
  };
  TRY(const Buffer q, zeros(n * s.q_heads * kQuery * 2));
  TRY(const Buffer absorbed, zeros(n * s.q_heads * kKey * 2));
  const View heads = q.view(DType::bf16, {n, s.q_heads, kQuery});
  const View out = absorbed.view(DType::bf16, {n, s.q_heads, kKey});
  View x = heads, y = out;
  x.shape[2] = kLatentHead;
  y.shape[2] = kLatent;
  OpCase product = latent_case(s, "head_matmul", n);
  product.operations = 2.0 * static_cast<double>(n * up.rows() * up.cols());
  visitor.measure_calls(std::move(product), [&] { ops.head_matmul(stream, {.x = x, .w = up, .y = y}); });

  const KvSpec spec{.kv_heads = 1,
                    .head_dim = kKey,
                    .block_size = kBlockSize,
                    .dtype = DType::bf16,
                    .values_in_keys = kLatent};
  const std::int64_t blocks = (n + kBlockSize - 1) / kBlockSize, block_bytes = ops.kv_block_bytes(spec);
  TRY(const Buffer cache, zeros(blocks * block_bytes));
  TRY(const Buffer kv, zeros(n * kKey * 4));
  TRY(const Buffer angles, zeros(n * kRotary / 2 * 4));
  TRY(const Buffer weight, zeros(kLatent * 4));
  std::vector<std::int64_t> slots(static_cast<std::size_t>(n));
  std::iota(slots.begin(), slots.end(), 0);
  TRY(const Buffer slot_memory, on_device(backend, slots));
  const View angle = angles.view(DType::f32, {n, kRotary / 2});
  OpCase store = latent_case(s, "latent_store", n);
  store.operations = 4.0 * static_cast<double>(n * (kKey + s.q_heads * kRotary));
  visitor.measure_calls(std::move(store), [&] {
    ops.latent_store(stream,
                     {.kv = kv.view(DType::f32, {n, kKey}),
                      .norm = {NormKind::rms, 1e-6f, weight.view(DType::f32, {kLatent}), {}},
                      .rope = {.cos = angle, .sin = angle, .rotary_dim = kRotary, .interleaved = true},
                      .slots = slot_memory.view(DType::i64, {n}),
                      .cache = {static_cast<std::byte*>(cache.data()), blocks, block_bytes, spec},
                      .q = heads,
                      .q_out = out});
  });
  return {};
}

}  // namespace

Result<> latent_cases(Backend& backend, const OpShapes& s, const OpVisitor& visitor) {
  const KvSpec spec{.kv_heads = 1, .head_dim = kLatent + kRotary, .values_in_keys = kLatent};
  if (!backend.ops.supports(spec, static_cast<int>(s.q_heads))) return {};
  const std::int64_t rows = s.q_heads * kLatent;
  const std::vector<std::uint8_t> numbers(static_cast<std::size_t>(rows * kLatentHead) * 2, 0x3c);
  const MatrixPart part{
      .values = View::of(const_cast<std::uint8_t*>(numbers.data()), DType::bf16, {rows, kLatentHead})};
  TRY(const WeightPtr up, backend.ops.prepare(*backend.device, {std::span(&part, 1), DType::bf16}));
  for (const std::int64_t n : kTokens) TRY_VOID(token_cases(backend, s, n, *up, visitor));
  return {};
}

}  // namespace octavo
