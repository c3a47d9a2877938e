#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

template <>
void check(const AnglesArgs& args) {
  const std::int64_t n = args.cos.size(0), pairs = args.cos.size(1);
  expect("angles positions", args.positions, DType::i32, {n});
  expect("angles frequencies", args.frequencies, DType::f32, {pairs});
  expect("angles cos", args.cos, DType::f32, {n, pairs});
  expect("angles sin", args.sin, DType::f32, {n, pairs});
}

template <>
void check(const QkvStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  const std::int64_t dim = spec.head_dim;
  CHECK(args.q_out.rank == 3);
  const std::int64_t n = args.q_out.size(0);
  expect_activation("qkv_store q_out", args.q_out, {n, args.q_heads, dim});
  const std::int64_t rows = args.q_heads + (args.stores ? 2 * spec.kv_heads : 0);
  expect("qkv_store qkv", args.qkv, args.q_out.dtype, {n, rows * dim});
  expect("qkv_store slots", args.slots, DType::i64, {n});

  const auto expect_head_norm = [&](std::string_view what, const Norm& norm, std::int64_t heads) {
    if (args.norm_whole_row) return expect_norm(what, norm, {heads * dim});
    if (norm.weight.rank == 2) return expect_norm(what, norm, {heads, dim});
    expect_norm(what, norm, {dim});
  };
  expect_head_norm("qkv_store q_norm", args.q_norm, args.q_heads);
  if (args.stores) expect_head_norm("qkv_store k_norm", args.k_norm, spec.kv_heads);
  expect_norm("qkv_store v_norm", args.v_norm, {dim});
  if (args.norm_rotated)
    CHECK(!args.norm_whole_row && args.q_norm.kind == NormKind::rms && args.k_norm.kind == NormKind::rms &&
              !args.q_norm.bias && !args.k_norm.bias,
          "the norm after RoPE must be the RMS norm of each head");

  const int rotary = args.rope.rotary_dim;
  CHECK(rotary >= 0 && rotary % 2 == 0 && rotary <= dim, "rotary_dim {} of head_dim {}", rotary, dim);
  if (rotary > 0) {
    expect("rope cos", args.rope.cos, DType::f32, {n, rotary / 2});
    expect("rope sin", args.rope.sin, DType::f32, {n, rotary / 2});
  }
}

template <>
void check(const HeadMatmulArgs& args) {
  CHECK(args.y.rank == 3);
  const std::int64_t m = args.y.size(0), heads = args.y.size(1), rows = args.y.size(2);
  CHECK(heads * rows == args.w.rows() && rows % kHeadRows == 0 && args.w.cols() <= kMaxLatentDim,
        "{} heads of a matrix {} x {}", heads, args.w.rows(), args.w.cols());
  expect("head_matmul x", args.x, args.w.activation(), {m, heads, args.w.cols()}, false);
  expect("head_matmul y", args.y, args.w.activation(), {m, heads, rows}, false);
}

template <>
void check(const LatentStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q_out.rank == 3 && args.q.rank == 3);
  const std::int64_t n = args.q_out.size(0), heads = args.q_out.size(1);
  const int rotary = spec.score_dim() - spec.values_in_keys;
  CHECK(spec.kv_heads == 1 && spec.values_in_keys > 0 && rotary > 0, "{} heads, {} of {} are values",
        spec.kv_heads, spec.values_in_keys, spec.score_dim());
  expect("latent_store kv", args.kv, DType::f32, {n, spec.score_dim()});
  expect_activation("latent_store q_out", args.q_out, {n, heads, spec.score_dim()});
  if (spec.index_dim > 0)
    expect("latent_store index_keys", args.index_keys, args.q_out.dtype, {n, spec.index_dim});
  CHECK(args.q.size(2) >= rotary, "a head of q has {} numbers, but RoPE rotates {}", args.q.size(2), rotary);
  expect("latent_store q", args.q, args.q_out.dtype, {n, heads, args.q.size(2)}, false);
  expect("latent_store slots", args.slots, DType::i64, {n});
  expect_norm("latent_store norm", args.norm, {spec.values_in_keys});
  CHECK(args.rope.rotary_dim == rotary, "rotary_dim {} of {}", args.rope.rotary_dim, rotary);
  expect("rope cos", args.rope.cos, DType::f32, {n, rotary / 2});
  expect("rope sin", args.rope.sin, DType::f32, {n, rotary / 2});
}

template <>
void check(const ChooseTokensArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q.rank == 3 && args.chosen.rank == 2);
  const std::int64_t n = args.q.size(0), heads = args.q.size(1);
  CHECK(spec.kv_heads == 1 && spec.index_dim > 0 && heads <= kMaxIndexHeads,
        "{} heads of {} for {} key heads", heads, spec.index_dim, spec.kv_heads);
  expect_activation("choose_tokens q", args.q, {n, heads, spec.index_dim});
  expect("choose_tokens weights", args.weights, DType::f32, {n, heads});
  expect("choose_tokens chosen", args.chosen, DType::i32, {n, args.chosen.size(1)});
}

template <>
void check(const ChooseBlocksArgs& args) {
  CHECK(args.q.rank == 3 && args.chosen.rank == 3 && args.cache.spec.kv_heads == 1);
  const std::int64_t n = args.q.size(0), heads = args.q.size(1), most = args.chosen.size(2);
  expect_activation("choose_blocks q", args.q, {n, heads, args.cache.spec.head_dim});
  expect("choose_blocks chosen", args.chosen, DType::i32, {n, heads, most});
  CHECK(args.block > 0 && args.local > 0 && args.local <= most, "{} blocks of {} tokens, {} local", most,
        args.block, args.local);
}

template <>
void check(const AttentionArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.q.rank == 3);
  const std::int64_t n = args.q.size(0);
  const std::int64_t heads = args.q.size(1);
  CHECK(heads % spec.kv_heads == 0, "{} query heads, {} key heads", heads, spec.kv_heads);
  expect_activation("attention q", args.q, {n, heads, spec.score_dim()});
  if (args.chosen) {
    if (args.chosen.rank == 3)
      expect("attention chosen", args.chosen, DType::i32, {n, spec.kv_heads, args.chosen.size(2)});
    else
      expect("attention chosen", args.chosen, DType::i32, {n, args.chosen.size(1)});
    CHECK(args.chosen_tokens > 0 && !(spec.shared_rows() && args.chosen.rank == 3),
          "chosen runs of {} tokens", args.chosen_tokens);
    CHECK(args.causal, "chosen tokens need causal attention");
  }
  expect("attention out", args.out, args.q.dtype, {n, heads * spec.value_dim()});
  if (args.sinks) expect("attention sinks", args.sinks, DType::f32, {heads});
  if (args.fixed_keys) {
    const std::int64_t fixed = args.fixed_keys.size(0);
    CHECK(fixed <= kMaxFixedKeys && args.soft_cap == 0 && !args.slopes && !args.distance_bias,
          "{} fixed keys", fixed);
    CHECK(!spec.shared_rows(), "fixed keys beside rows that are keys and values");
    expect("attention fixed_keys", args.fixed_keys, DType::f32, {fixed, spec.kv_heads, spec.score_dim()});
    expect("attention fixed_values", args.fixed_values, DType::f32, {fixed, spec.kv_heads, spec.value_dim()});
  }
  if (args.entry_plan != nullptr)
    CHECK(spec.shared_rows() && args.entries.spec.shared_rows() &&
              args.entries.spec.score_dim() == spec.score_dim() && args.entries.spec.dtype == spec.dtype,
          "entries have {} values, but cache rows have {}", args.entries.spec.score_dim(), spec.score_dim());
  if (spec.shared_rows()) CHECK(args.causal && args.chunk == 0 && args.soft_cap == 0 && !args.slopes);
  CHECK(args.scale > 0 && args.window >= 0 && args.soft_cap >= 0, "scale {}, window {}, soft cap {}",
        args.scale, args.window, args.soft_cap);
  CHECK(args.chunk == 0 || (args.causal && args.window == args.chunk), "chunks of {}, a window of {}",
        args.chunk, args.window);
  if (args.distance_bias) {
    expect("attention distance bias", args.distance_bias, DType::f32, {heads, args.distance_bias.size(1)});
    CHECK(args.distance_bias.size(1) % 2 == 1 && args.soft_cap == 0, "{} biases, a soft cap of {}",
          args.distance_bias.size(1), args.soft_cap);
  }
  if (!args.slopes) return;
  expect("attention slopes", args.slopes, DType::f32, {heads});
  CHECK(args.soft_cap == 0, "slopes and a soft cap");
}

template <>
void check(const RotateEndsArgs& args) {
  CHECK(args.x.rank == 3);
  const std::int64_t n = args.x.size(0), dim = args.x.size(2), pairs = args.frequencies.size(0);
  expect_activation("rotate_ends x", args.x, {n, args.x.size(1), dim});
  expect_norm("rotate_ends norm", args.norm, {dim});
  expect("rotate_ends positions", args.positions, DType::i32, {n});
  expect("rotate_ends frequencies", args.frequencies, DType::f32, {pairs});
  CHECK(2 * pairs <= dim, "{} pairs of heads of {}", pairs, dim);
}

template <>
void check(const StoreRowsArgs& args) {
  const KvSpec& spec = args.cache.spec;
  CHECK(args.x.rank == 2 && spec.shared_rows());
  const std::int64_t n = args.x.size(0), dim = args.x.size(1), pairs = args.frequencies.size(0);
  expect("store_rows x", args.x, DType::f32, {n, dim});
  expect_norm("store_rows norm", args.norm, {dim});
  expect("store_rows positions", args.positions, DType::i32, {n});
  expect("store_rows frequencies", args.frequencies, DType::f32, {pairs});
  expect("store_rows slots", args.slots, DType::i64, {n});
  CHECK(2 * pairs <= dim && args.first >= 0 && args.first + dim <= spec.head_dim,
        "{} pairs of {} from {} on of {}", pairs, dim, args.first, spec.head_dim);
}

}  // namespace octavo
