#include "transfer/peers/nixl/vllm_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

namespace octavo {
namespace {

constexpr int kLayers = 2, kHeads = 3, kDim = 32, kTokens = 32, kPiece = 48;

BlockFormat format_of(std::string_view dtype, int bytes) {
  return {.fingerprint = "m",
          .dtype = std::string(dtype),
          .block_size = kPiece,
          .bytes = std::int64_t{kLayers} * 2 * kHeads * kPiece * kDim * bytes,
          .planes = std::vector<BlockFormat::Planes>(kLayers, {2 * kHeads, kDim * bytes})};
}

VllmAgent agent_of(std::string_view backend, std::string_view layout, int bytes) {
  const std::int64_t block = 2 * kHeads * kTokens * kDim * bytes;
  return {.engine_id = "e",
          .backend = std::string(backend),
          .layout = std::string(layout),
          .block_size = kTokens,
          .regions = std::vector<VllmRegion>(
              kLayers, {.address = 0, .block_bytes = block, .stride = block, .blocks = 9})};
}

// A different value for each number of a prompt's keys and values.
std::uint16_t number(int layer, int part, int head, int token, int element) {
  return static_cast<std::uint16_t>((((layer * 2 + part) * kHeads + head) * 256 + token) * kDim + element);
}

// index: position of a number in a layer's block, counted in numbers.
using Index = std::function<int(int part, int head, int token, int element)>;

std::vector<std::byte> block_of(int first_token, const Index& index) {
  constexpr int kLayerNumbers = 2 * kHeads * kTokens * kDim;
  std::vector<std::uint16_t> numbers(kLayers * kLayerNumbers);
  for (int layer = 0; layer < kLayers; ++layer)
    for (int part = 0; part < 2; ++part)
      for (int head = 0; head < kHeads; ++head)
        for (int t = 0; t < kTokens; ++t)
          for (int e = 0; e < kDim; ++e)
            numbers[static_cast<std::size_t>(layer * kLayerNumbers + index(part, head, t, e))] =
                number(layer, part, head, first_token + t, e);
  std::vector<std::byte> bytes(numbers.size() * sizeof(numbers[0]));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Copies the prompt's second piece (tokens 48 to 95) from the blocks of 32 tokens, and checks each number.
void expect_second_piece(const VllmBlocks& blocks, const Index& index) {
  std::vector<std::uint16_t> piece(static_cast<std::size_t>(kLayers) * 2 * kHeads * kPiece * kDim);
  const auto bytes = std::as_writable_bytes(std::span(piece));
  blocks.copy(block_of(32, index), 16, 16, bytes, 0);
  blocks.copy(block_of(64, index), 0, 32, bytes, 16);
  auto at = piece.begin();
  for (int layer = 0; layer < kLayers; ++layer)
    for (int part = 0; part < 2; ++part)
      for (int head = 0; head < kHeads; ++head)
        for (int t = 0; t < kPiece; ++t)
          for (int e = 0; e < kDim; ++e)
            ASSERT_EQ(*at++, number(layer, part, head, 48 + t, e)) << layer << part << head << t << e;
}

TEST(VllmBlocks, ConvertsTheLayoutsOfGpus) {
  const auto convert = [](std::string_view backend, std::string_view layout, const Index& index) {
    expect_second_piece(VllmBlocks::of(format_of("f16", 2), agent_of(backend, layout, 2)).value(), index);
  };
  for (const char* backend : {"FLASH_ATTN", "TRITON_ATTN"}) {
    convert(backend, "LBNHC",
            [](int part, int head, int t, int e) { return ((t * kHeads + head) * 2 + part) * kDim + e; });
    convert(backend, "LBHNC",
            [](int part, int head, int t, int e) { return ((head * kTokens + t) * 2 + part) * kDim + e; });
  }
}

// The expected positions are those that vLLM 0.32's operator cpu_attn_reshape_and_cache writes with the
// instruction sets "vec" and "amx".
TEST(VllmBlocks, ConvertsTheLayoutsOfTheCpu) {
  const Index vectors = [](int part, int head, int t, int e) {
    const int plane = (head * 2 + part) * kTokens * kDim;
    return part == 0 ? plane + e * kTokens + t : plane + t * kDim + e;
  };
  const Index tiles = [](int part, int head, int t, int e) {
    const int plane = (head * 2 + part) * kTokens * kDim;
    return part == 0 ? plane + ((t / 16 * (kDim / 2) + e / 2) * 16 + t % 16) * 2 + e % 2
                     : plane + ((e / 16 * (kTokens / 2) + t / 2) * 16 + e % 16) * 2 + t % 2;
  };
  const auto blocks = [](std::string_view dtype, bool amx) {
    return VllmBlocks::of(format_of(dtype, 2), agent_of("CPU_ATTN", "LBHNC", 2), amx);
  };
#if defined(__x86_64__)
  expect_second_piece(blocks("f16", true).value(), vectors);
  expect_second_piece(blocks("bf16", false).value(), vectors);
  expect_second_piece(blocks("bf16", true).value(), tiles);
#else
  EXPECT_EQ(blocks("bf16", false).error().code, ErrorCode::invalid_argument);
#endif
}

TEST(VllmBlocks, ErrorsNameTheFieldAndBothValues) {
  const auto error = [](const BlockFormat& format, const VllmAgent& agent) {
    const auto blocks = VllmBlocks::of(format, agent);
    if (blocks) return std::string("no error");
    EXPECT_EQ(blocks.error().code, ErrorCode::invalid_argument);
    return blocks.error().message;
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.contains(part); };
  const BlockFormat format = format_of("bf16", 2);
  const VllmAgent agent = agent_of("FLASH_ATTN", "LBNHC", 2);
  ASSERT_EQ(error(format, agent), "no error");

  VllmAgent other = agent;
  other.layout = "BLHNC";
  EXPECT_PRED2(has, error(format, other), "BLHNC");
  other = agent;
  other.regions.pop_back();
  EXPECT_PRED2(has, error(format, other), "1 regions at the other engine and 2 layers here");
  other = agent_of("FLASH_ATTN", "LBNHC", 4);
  EXPECT_PRED2(has, error(format, other), "block_lens is 24576 at the other engine and 12288 here");
  other = agent;
  other.regions[1].stride = 1;
  EXPECT_PRED2(has, error(format, other), "block_strides is 1");
  other = agent;
  other.context_ranks = 2;
  EXPECT_PRED2(has, error(format, other), "is 2 at the other engine, must be 1");
  other = agent;
  other.block_size = 1 << 20;
  EXPECT_PRED2(has, error(format, other), "block_size is 1048576");
}

TEST(VllmBlocks, SomeFormatsAreNotSupported) {
  const auto error = [](const BlockFormat& format) {
    const Result<> checked = VllmBlocks::check(format);
    return checked ? std::nullopt : std::optional(checked.error().code);
  };
  EXPECT_EQ(error(format_of("bf16", 2)), std::nullopt);
  EXPECT_EQ(error(format_of("f8_e4m3", 1)), ErrorCode::unsupported);
  BlockFormat format = format_of("bf16", 2);
  format.planes[1].token_bytes *= 2;
  EXPECT_EQ(error(format), ErrorCode::unsupported);
  format = format_of("bf16", 2);
  format.planes[0].count = format.planes[1].count = 1;  // only keys
  EXPECT_EQ(error(format), ErrorCode::unsupported);
  format.planes.clear();
  EXPECT_EQ(error(format), ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo
