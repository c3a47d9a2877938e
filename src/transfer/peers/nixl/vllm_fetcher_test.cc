// Tests the fetcher with a prefill server of vLLM's protocol in this process. The tests are
// skipped without libnixl_capi.so (the wheel nixl-cu12 or nixl-cu13, with its folder in LD_LIBRARY_PATH).
#include "transfer/peers/nixl/vllm_fetcher.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <vector>

#include "transfer/peers/peer_connector.h"
#include "transfer/testing/vllm_prefill.h"

namespace octavo {
namespace {

constexpr int kHeads = 2, kVectorBytes = 64, kPieceTokens = 48, kVllmTokens = 32;
constexpr std::int64_t kVllmBlockBytes = std::int64_t{2} * kHeads * kVllmTokens * kVectorBytes;
const std::vector<std::int64_t> kIds{4, 2, 8};  // 96 tokens: two pieces

BlockFormat small_format() {
  return {.fingerprint = "m",
          .dtype = "f32",
          .block_size = kPieceTokens,
          .bytes = std::int64_t{VllmPrefill::kLayers} * 2 * kHeads * kPieceTokens * kVectorBytes,
          .planes = std::vector<BlockFormat::Planes>(VllmPrefill::kLayers, {2 * kHeads, kVectorBytes})};
}

LoadTask task_of(int port) {
  LoadTask task{.id = 3,
                .from = {.do_remote_prefill = true,
                         .remote_engine_id = "vllm",
                         .remote_request_id = "r",
                         .remote_host = "127.0.0.1",
                         .remote_port = port,
                         .remote_block_ids = {kIds},
                         .remote_num_tokens = 96},
                .keys = {{1, 1}, {2, 2}},
                .cancelled = std::make_shared<std::atomic<bool>>(false)};
  task.blocks = {{.number = 10}, {.number = 11}};
  return task;
}

class VllmFetcherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto agent = NixlAgent::start("libnixl_capi.so", "UCX");
    if (!agent) GTEST_SKIP() << agent.error().message;
    fetcher = std::make_unique<VllmFetcher>(
        small_format(), *std::move(agent), allocate_host,
        [this](KvLocation to, std::span<const std::byte> piece) {
          const std::lock_guard lock(mutex);
          written.push_back({to.number, {piece.begin(), piece.end()}});
        },
        [this](LoadResult got) { results.set_value(std::move(got)); }, PeerTimes{.silence = 1'000});
  }

  LoadResult load(LoadTask task) {
    results = {};
    fetcher->post(std::move(task));
    return results.get_future().get();
  }

  std::mutex mutex;  // guards `written`
  std::vector<std::pair<int, std::vector<std::byte>>> written;
  std::promise<LoadResult> results;
  std::unique_ptr<VllmFetcher> fetcher;
};

TEST_F(VllmFetcherTest, BlocksArriveAndTheOtherEngineIsNotified) {
  VllmPrefill prefill("vllm", kVllmBlockBytes);
  const LoadResult result = load(task_of(prefill.port()));
  EXPECT_EQ(result.failure, std::nullopt) << result.message;
  EXPECT_EQ(result.loaded, 2);
  EXPECT_EQ(result.bytes, 2 * small_format().bytes);
  ASSERT_EQ(written.size(), 2u);
  for (int piece = 0; piece < 2; ++piece) {
    EXPECT_EQ(written[static_cast<std::size_t>(piece)].first, 10 + piece);
    for (std::size_t at = 0; at < written[static_cast<std::size_t>(piece)].second.size(); ++at) {
      const auto token = static_cast<std::size_t>(piece) * kPieceTokens + at / kVectorBytes % kPieceTokens;
      ASSERT_EQ(written[static_cast<std::size_t>(piece)].second[at],
                static_cast<std::byte>(kIds[token / kVllmTokens]));
    }
  }
  EXPECT_EQ(prefill.notification(), "r:1");
  ASSERT_TRUE(fetcher->renew("127.0.0.1", prefill.port(), {"r1", "r2"}));
  EXPECT_EQ(prefill.notification(), "HB:r1,r2");
  LoadTask unused = task_of(prefill.port());
  unused.blocks.clear();
  fetcher->post(unused);
  EXPECT_EQ(prefill.notification(), "r:1");
}

TEST_F(VllmFetcherTest, ATaskCanBeginInsideOfABlock) {
  VllmPrefill prefill("vllm", kVllmBlockBytes);
  LoadTask task = task_of(prefill.port());
  task.first = 1;
  task.blocks = {{.number = 11}};
  const LoadResult result = load(task);
  EXPECT_EQ(result.failure, std::nullopt) << result.message;
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].second.front(), static_cast<std::byte>(kIds[1]));
  EXPECT_EQ(written[0].second.back(), static_cast<std::byte>(kIds[2]));
}

TEST_F(VllmFetcherTest, FailuresAreReported) {
  int port = 0;
  {
    VllmPrefill prefill("vllm", kVllmBlockBytes);
    port = prefill.port();
    LoadTask other = task_of(port);
    other.from.remote_engine_id = "another";
    LoadResult result = load(other);
    EXPECT_EQ(result.failure, KvTransferFailure::mismatch);
    EXPECT_NE(result.message.find(R"("vllm" at the other engine, and remote_engine_id is "another")"),
              std::string::npos)
        << result.message;
    other = task_of(port);
    other.from.remote_block_ids = {{1, 2, VllmPrefill::kBlocks}};
    EXPECT_EQ(load(other).failure, KvTransferFailure::mismatch);
    other.from.remote_block_ids = {{1, -1, 2}};
    EXPECT_EQ(load(other).failure, KvTransferFailure::mismatch);
    other.from.remote_block_ids = {{1, 2, 3}, {1, 2, 3}};
    EXPECT_EQ(load(other).failure, KvTransferFailure::mismatch);
    other.from.remote_block_ids = {{1}};  // 32 tokens, less than a piece
    result = load(other);
    EXPECT_EQ(result.failure, std::nullopt);
    EXPECT_EQ(result.loaded, 0);
  }
  VllmPrefill smaller("vllm", kVllmBlockBytes / 2);
  EXPECT_EQ(load(task_of(smaller.port())).failure, KvTransferFailure::mismatch);
}

// The engine at the address stops after the handshake. Another engine with the same name starts at another
// port.
TEST_F(VllmFetcherTest, AStoppedEngineIsUnreachable) {
  int port = 0;
  {
    VllmPrefill prefill("vllm", kVllmBlockBytes);
    port = prefill.port();
    EXPECT_EQ(load(task_of(port)).failure, std::nullopt);
  }
  const auto failed = load(task_of(port)).failure;
  EXPECT_TRUE(failed == KvTransferFailure::lost || failed == KvTransferFailure::unreachable);
  EXPECT_EQ(load(task_of(port)).failure, KvTransferFailure::unreachable);
  VllmPrefill again("vllm", kVllmBlockBytes);
  const LoadResult result = load(task_of(again.port()));
  EXPECT_EQ(result.failure, std::nullopt) << result.message;
}

TEST(VllmPrompts, PromptsThatDifferAreComputedHere) {
  const auto connector =
      PeerConnector::start({.consumes = true, .nixl_backend = "UCX"}, small_format(), 0, {});
  if (!connector) GTEST_SKIP() << connector.error().message;
  const KvTransferParams params = task_of(1).from;
  const std::vector<TokenId> text(96);
  const std::vector<Hash128> keys(2);
  const auto matched = [&](int tokens, std::span<const TokenId> words) {
    return (*connector)->matched({.tokens = tokens, .text = words, .keys = keys, .params = &params});
  };
  EXPECT_EQ(matched(97, text), 1);  // a block that may contain the last token is not loaded
  EXPECT_EQ(matched(96, text), 1);
  EXPECT_EQ(matched(95, text), 0);  // vLLM's prompt has more tokens
  EXPECT_EQ(matched(97, {}), 0);    // a prompt with images
}

TEST(NixlLibrary, AMissingLibraryIsAnError) {
  const auto missing = load_nixl("/no/such/libnixl_capi.so");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unsupported);
  EXPECT_NE(missing.error().message.find("/no/such/libnixl_capi.so"), std::string::npos)
      << missing.error().message;
  const auto other = load_nixl("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace octavo
