// Tests values that are derived from a spec: cache layout, RoPE tables, parameter names, costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/backends.h"
#include "model/cache_layout.h"
#include "model/inspect.h"
#include "model/parameters.h"
#include "model/rope.h"
#include "model/workspaces.h"

namespace octavo {
namespace {

ModelSpec with_windows(const std::vector<int>& windows) {
  ModelSpec spec;
  spec.dim = 64;
  spec.vocab = 100;
  spec.max_positions = 4096;
  for (const int window : windows) {
    LayerSpec layer;
    layer.mixer = Attention{.q_heads = 4, .kv_heads = 2, .head_dim = 16, .mask = {.window = window}};
    layer.feed_forward = Mlp{.hidden = 96};
    spec.layers.push_back(layer);
  }
  return spec;
}

void expect_sound(const ModelSpec& spec, const CacheLayout& layout, bool window_groups) {
  ASSERT_EQ(layout.layers.size(), spec.layers.size());
  std::set<std::pair<int, int>> planes;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const CacheLayer& layer = layout.layers[i];
    EXPECT_TRUE(planes.emplace(layer.group, layer.plane).second);
    EXPECT_LT(layer.plane, layout.planes);
    const int window = layout.groups.at(static_cast<std::size_t>(layer.group)).window;
    EXPECT_EQ(window, window_groups ? spec.layers[i].attention().mask.window : 0);
  }
}

TEST(CacheLayout, GroupsHaveEqualNumbersOfLayers) {
  const auto check = [](const std::vector<int>& windows, std::size_t groups, int planes) {
    const ModelSpec spec = with_windows(windows);
    const CacheLayout layout = cache_layout(spec, {});
    EXPECT_EQ(layout.groups.size(), groups);
    EXPECT_EQ(layout.planes, planes);
    expect_sound(spec, layout, true);
    const CacheLayout full = cache_layout(spec, {.window_groups = false});
    EXPECT_EQ(full.groups.size(), 1u);
    EXPECT_EQ(full.planes, static_cast<int>(windows.size()));
    expect_sound(spec, full, false);
  };
  check({0, 0, 0}, 1, 3);
  check({8, 8, 8}, 1, 3);
  check({8, 0, 8, 0}, 2, 2);                          // Gemma 2
  check({8, 8, 8, 8, 8, 0, 8, 8, 8, 8, 8, 0}, 6, 2);  // Gemma 3
  check({8, 8, 8, 8, 8, 0, 0, 0, 0}, 3, 4);  // 5 and 4 layers differ by a quarter, so groups have 4 layers
  // 6 and 5 layers are nearly equal: one group for each need, and one unused plane
  check({8, 8, 8, 8, 8, 8, 0, 0, 0, 0, 0}, 2, 6);
}

TEST(CacheLayout, LayersOfABlockDoNotOverlap) {
  const Backend backend = make_reference_backend();
  const CacheLayout layout = cache_layout(with_windows({8, 0, 8, 0}), {});
  std::vector<std::byte> pool(static_cast<std::size_t>(3 * layout.block_bytes(backend.ops)));
  const KvLayer first = layout.layer(backend.ops, pool.data(), 3, 0);
  const KvLayer third = layout.layer(backend.ops, pool.data(), 3, 2);
  EXPECT_EQ(third.data - first.data, backend.ops.kv_block_bytes(layout.groups[0].kv));
  EXPECT_EQ(first.stride_bytes, 2 * backend.ops.kv_block_bytes(layout.groups[0].kv));
}

TEST(CacheLayout, StatesOfRecurrentLayersLieNextToEachOther) {
  ModelSpec spec = with_windows({0, 0, 0});
  const DeltaNet net{.key_heads = 2, .value_heads = 4, .key_dim = 8, .value_dim = 10, .conv_width = 4};
  spec.layers[0].mixer = spec.layers[2].mixer = net;
  const CacheLayout layout = cache_layout(spec, {});
  const std::int64_t floats = 3 * (2 * 2 * 8 + 4 * 10) + 4 * 8 * 10;
  EXPECT_EQ(layout.layers[0].state, 0);
  EXPECT_EQ(layout.layers[1].state, -1);
  EXPECT_EQ(layout.layers[2].state, floats);
  EXPECT_EQ(layout.state_floats, 2 * floats);
  EXPECT_EQ(layout.layers[0].group, -1);
  EXPECT_EQ(layout.planes, 1);
}

TEST(CacheLayout, ALayerMayHaveBothACacheAndAState) {
  ModelSpec spec = with_windows({0, 0});
  const Mamba2 mamba{.heads = 2, .head_dim = 8, .groups = 1, .state_dim = 4, .conv_width = 3};
  spec.layers[0].second_mixer = mamba;
  const CacheLayout layout = cache_layout(spec, {});
  EXPECT_EQ(layout.layers[0].group, 0);
  EXPECT_EQ(layout.layers[0].state, 0);
  EXPECT_EQ(layout.layers[1].group, 0);
  EXPECT_EQ(layout.layers[1].state, -1);
  EXPECT_EQ(layout.state_floats, 2 * (16 + 2 * 4) + 16 * 4);
}

TEST(CacheLayout, WithoutAttentionThereIsNoCache) {
  ModelSpec spec = with_windows({0, 0});
  for (LayerSpec& layer : spec.layers)
    layer.mixer = Mamba{.inner = 16, .state_dim = 4, .step_rank = 2, .conv_width = 4};
  const Backend backend = make_reference_backend();
  const CacheLayout layout = cache_layout(spec, {});
  EXPECT_TRUE(layout.groups.empty());
  EXPECT_EQ(layout.block_bytes(backend.ops), 0);
  EXPECT_EQ(layout.state_floats, 2 * (3 * 16 + 4 * 16));
}

TEST(Rope, DynamicAndLongropeFollowTheConfiguredLength) {
  RopeSpec rope{.rotary_dim = 16, .theta = 10000};
  const std::vector<float> plain = rope_frequencies(rope, 64);
  EXPECT_FLOAT_EQ(plain[0], 1);
  EXPECT_FLOAT_EQ(plain[4], 0.01F);

  rope.scaling = {.kind = RopeScalingKind::dynamic, .factor = 2, .original_positions = 64};
  EXPECT_EQ(rope_frequencies(rope, 32), plain);
  EXPECT_EQ(rope_frequencies(rope, 64), plain);
  EXPECT_LT(rope_frequencies(rope, 65)[4], plain[4]);
  EXPECT_LT(rope_frequencies(rope, 128)[4], rope_frequencies(rope, 65)[4]);

  rope.scaling = {.kind = RopeScalingKind::longrope,
                  .original_positions = 64,
                  .short_factors = std::vector<double>(8, 1),
                  .long_factors = std::vector<double>(8, 2)};
  EXPECT_EQ(rope_frequencies(rope, 64), plain);
  EXPECT_FLOAT_EQ(rope_frequencies(rope, 65)[0], 0.5F);
}

// GTE has head_dim 64, theta 20,000 and factor 8. Scaling makes theta 160,000 and divides each frequency by
// 8^(1/32).
TEST(Rope, NtkStretchesTheta) {
  RopeSpec rope{.rotary_dim = 64, .theta = 20'000};
  rope.scaling = {.kind = RopeScalingKind::ntk, .factor = 8};
  const std::vector<float> stretched = rope_frequencies(rope, 64);
  const std::vector<float> plain = rope_frequencies({.rotary_dim = 64, .theta = 160'000}, 64);
  for (std::size_t pair = 0; pair < 32; ++pair)
    EXPECT_FLOAT_EQ(stretched[pair] * std::pow(8.0F, 1.0F / 32), plain[pair]) << pair;
}

TEST(Rope, AxesMayTakeTurnsWithFrequencies) {
  const std::vector<float> plain = rope_frequencies({.rotary_dim = 8}, 64);
  RopeSpec rope{.rotary_dim = 8, .axes = {0, 0, 1, 1}, .axis_frequencies = AxisFrequencies::alternating};
  EXPECT_EQ(rope_frequencies(rope, 64), (std::vector{plain[0], plain[2], plain[1], plain[3]}));
}

TEST(Costs, CountParametersAndWork) {
  ModelSpec spec = with_windows({0, 8});
  spec.logits.tied = true;
  // Each layer has qkv 128 x 64, out 64 x 64, up 192 x 64 and down 64 x 96. The embedding is 100 x 64.
  const std::int64_t layers = 2 * (128 * 64 + 64 * 64 + 192 * 64 + 64 * 96);
  EXPECT_EQ(count_parameters(spec).total, layers + 6400);
  EXPECT_EQ(count_parameters(spec).active, layers + 6400);
  spec.logits.tied = false;
  EXPECT_EQ(count_parameters(spec).total, layers + 2 * 6400);

  const PassCost one = pass_cost(spec, 1, 100, 2, 2);
  EXPECT_DOUBLE_EQ(one.operations, 2.0 * static_cast<double>(layers + 6400) + 4 * 64 * (100 + 8));
  EXPECT_DOUBLE_EQ(one.bytes, 2.0 * static_cast<double>(layers + 6400) + 2 * 2 * 32 * (100 + 1 + 8 + 1));
  const PassCost three = pass_cost(spec, 3, 3, 2, 2);
  EXPECT_DOUBLE_EQ(three.operations, 2.0 * static_cast<double>(3 * layers + 6400) + 4 * 64 * (6 + 6));
}

// A drafter has slots for the rows that it reads, for embedding and row concatenated, and for row indices.
// The target has slots for the residual before each layer that the drafter reads.
TEST(Workspaces, CountDraftHeadsAndWhatTheyRead) {
  ModelSpec spec = with_windows({0});
  constexpr std::int64_t kTokens = 64, kDim = 64;
  DecoderLimits limits{.max_tokens = kTokens, .max_logit_rows = 1};
  const std::int64_t plain = workspace_bytes(spec, DType::bf16, limits);
  limits.kept_layers = {0, 0};
  EXPECT_EQ(workspace_bytes(spec, DType::bf16, limits), plain + 2 * kTokens * kDim * 4 + kTokens * 4);
  limits.kept_layers.clear();
  spec.inputs.hidden = HiddenInput{.dim = kDim, .vocab = 100};
  EXPECT_EQ(workspace_bytes(spec, DType::bf16, limits), plain + kTokens * (kDim * 4 + 2 * kDim * 2) + kTokens * 4);
}

}  // namespace
}  // namespace octavo
