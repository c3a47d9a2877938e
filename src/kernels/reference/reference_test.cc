// Compares the reference with values calculated by hand.
#include "kernels/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backends.h"

namespace octavo {
namespace {

class Reference : public testing::Test {
 protected:
  Backend backend = make_reference_backend();
  const Ops& ops = backend.ops;
  Stream& stream = *backend.stream;
};

View of(std::vector<float>& values, std::initializer_list<std::int64_t> shape) {
  return View::of(values.data(), DType::f32, shape);
}

TEST_F(Reference, MatmulAddsTheBias) {
  std::vector<float> top{1, 2}, rest{3, 4, 5, 6}, x{1, -1, 2, 0}, bias{10, 20, 30}, y(6);
  const std::vector<MatrixPart> parts{{.values = of(top, {1, 2})}, {.values = of(rest, {2, 2})}};
  const WeightPtr w = ops.prepare(*backend.device, {parts, DType::f32}).value();
  ops.matmul(stream, {.x = of(x, {2, 2}), .w = *w, .bias = of(bias, {3}), .y = of(y, {2, 3})});
  EXPECT_EQ(y, (std::vector<float>{9, 19, 29, 12, 26, 40}));
}

TEST_F(Reference, AddNormUpdatesTheResidualFirst) {
  std::vector<float> residual{1, 2}, delta{4, 4}, weight{1, 10}, out(2);
  ops.add_norm(stream, {.residual = of(residual, {1, 2}),
                        .delta = of(delta, {1, 2}),
                        .delta_scale = 0.5f,
                        .norm = {.kind = NormKind::layer, .weight = of(weight, {2})},
                        .out = of(out, {1, 2})});
  EXPECT_EQ(residual, (std::vector<float>{3, 4}));
  EXPECT_EQ(out, (std::vector<float>{-1, 10}));
}

TEST_F(Reference, ActivateGates) {
  std::vector<float> x{0, 2, 5, -3}, y(2);
  ops.activate(stream,
               {.x = of(x, {1, 4}), .activation = Activation::relu, .gated = true, .y = of(y, {1, 2})});
  EXPECT_EQ(y, (std::vector<float>{0, -6}));
}

TEST_F(Reference, ScaleLogitsCaps) {
  std::vector<float> logits{1, 1e9f};
  ops.scale_logits(stream, {.logits = of(logits, {1, 2}), .scale = 2, .soft_cap = 30});
  EXPECT_FLOAT_EQ(logits[0], static_cast<float>(30 * std::tanh(2.0 / 30)));
  EXPECT_FLOAT_EQ(logits[1], 30);
}

// Two tokens of one head in block 1 (block 0 belongs to another sequence). The second token attends to both.
// Keys are rotated by 90 degrees per position, so that the product of the second query with the first key is
// 0, and with its own key 1.
TEST_F(Reference, AttentionIsCausalAndPaged) {
  const KvSpec spec{.kv_heads = 1, .head_dim = 8, .block_size = 16, .dtype = DType::f32};
  std::vector<float> pages(static_cast<std::size_t>(ops.kv_block_bytes(spec)) / 4 * 2, std::nanf(""));
  const KvLayer cache{reinterpret_cast<std::byte*>(pages.data()), 2, ops.kv_block_bytes(spec), spec};
  std::vector<float> qkv(48), q(16), out(16), cos{1, 0}, sin{0, 1};
  qkv[0] = qkv[8] = qkv[24] = qkv[32] = 1;  // first element of the queries and keys of both tokens
  qkv[16] = 3;                              // first element of the values
  qkv[40] = 5;
  std::vector<std::int64_t> slots{16, 17};
  ops.qkv_store(stream, {.qkv = of(qkv, {2, 24}),
                         .q_heads = 1,
                         .rope = {.cos = of(cos, {2, 1}), .sin = of(sin, {2, 1}), .rotary_dim = 2},
                         .slots = View::of(std::span(slots)),
                         .cache = cache,
                         .q_out = of(q, {2, 1, 8})});
  EXPECT_EQ(q[8], 0);
  EXPECT_EQ(q[9], 1);
  const std::vector<std::int32_t> starts{0, 2}, lengths{2}, table{1};
  const auto plan = ops.make_attention_plan(*backend.device, {});
  ops.plan_attention(stream, {starts, lengths, table, 1}, **plan);
  ops.attention(stream,
                {.q = of(q, {2, 1, 8}), .cache = cache, .plan = **plan, .scale = 1, .out = of(out, {2, 8})});
  EXPECT_FLOAT_EQ(out[0], 3);
  EXPECT_FLOAT_EQ(out[8], static_cast<float>((3 + 5 * std::exp(1)) / (1 + std::exp(1))));
  ops.attention(stream, {.q = of(q, {2, 1, 8}),
                         .cache = cache,
                         .plan = **plan,
                         .scale = 1,
                         .window = 1,
                         .out = of(out, {2, 8})});
  EXPECT_FLOAT_EQ(out[8], 5);
}

}  // namespace
}  // namespace octavo
