#include "transfer/peers/peer_connector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "http/url.h"
#include "transfer/peers/block_fetcher.h"
#include "transfer/peers/nixl/vllm_fetcher.h"
#include "transfer/peers/ucx_plugin.h"

namespace octavo {
namespace {

constexpr int kPort = 5600;

bool names_blocks(const KvTransferParams& from) {
  return !from.remote_engine_id.empty() && !from.remote_request_id.empty() && !from.remote_host.empty() &&
         from.remote_port != 0 && !from.remote_block_ids.empty() && !from.remote_block_ids[0].empty();
}

// Returns an upper bound for the number of blocks, of this engine's block size, that the producer has. The
// producer's block size may differ, so the bound is computed from remote_num_tokens. The Ready message has
// the exact number.
std::size_t blocks_of(const BlockFormat& format, const KvTransferParams& from) {
  const std::size_t params = from.remote_block_ids[0].size();
  if (format.planes.empty() || from.remote_num_tokens <= 0) return params;
  return static_cast<std::size_t>((from.remote_num_tokens - 1) / format.block_size);
}

// vLLM does not report the tokens of its blocks, so only their number is checked. The number of tokens of an
// image can differ between vLLM and this engine, so prompts with images do not match.
bool matches_vllms_prompt(const KvPrompt& prompt) {
  if (prompt.params->remote_num_tokens <= prompt.tokens && !prompt.text.empty()) return true;
  log(LogLevel::warning,
      "request {}: this engine computes the prompt, because it has {} tokens{}, and vLLM has computed {}",
      prompt.name, prompt.tokens, prompt.text.empty() ? " and images" : "", prompt.params->remote_num_tokens);
  return false;
}

// Returns the block ids of each cache group, for remote_block_ids. A block outside of the sliding window has
// id 0, vLLM's null block.
std::vector<std::vector<std::int64_t>> ids_of(const BlockFormat& format, const StoreTask& task) {
  const auto blocks = static_cast<std::size_t>(task.prefix);
  std::vector<std::vector<std::int64_t>> ids(format.windows.size());
  for (const KvLocation& location : task.blocks)
    if (location.part < group_count(format))
      ids[static_cast<std::size_t>(location.part)].push_back(location.number);
  if (ids.empty()) ids.emplace_back();
  for (std::vector<std::int64_t>& group : ids) group.insert(group.begin(), blocks - group.size(), 0);
  return ids;
}

}  // namespace

Result<std::unique_ptr<KvConnector>> PeerConnector::start(KvTransferOptions options, BlockFormat format,
                                                          int engine, CacheAccess cache) {
  if (options.produces && (options.host == "0.0.0.0" || options.host == "::"))
    return invalid("", "the host of the side channel must be an address that other engines can reach, got {}",
                   options.host);
  if (options.engine_id.empty())
    options.engine_id = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  if (options.host.empty()) options.host = "127.0.0.1";
  if (options.port != 0) options.port = options.port.value_or(kPort) + engine;
  std::unique_ptr<PeerConnector> peers(
      new PeerConnector(std::move(options), std::move(format), std::move(cache)));
  if (peers->options_.produces) TRY_VOID(peers->listen());
  if (peers->options_.consumes) TRY_VOID(peers->start_fetcher());
  return peers;
}

PeerConnector::PeerConnector(KvTransferOptions options, BlockFormat format, CacheAccess cache)
    : options_(std::move(options)),
      format_(std::move(format)),
      cache_(std::move(cache)),
      leases_(options_.lease_seconds) {}

PeerConnector::~PeerConnector() {
  if (keeper_ != nullptr) keeper_->stop();  // because it uses the fetcher
}

Result<> PeerConnector::start_fetcher() {
  const auto done = [this](LoadResult result) {
    keeper_->let_go(result.id);
    note(result);
    result.from[static_cast<std::size_t>(KvSource::peer)] = result.loaded;
    cache_.loaded(std::move(result));
  };
  if (options_.nixl_backend.empty()) {
    if (options_.ucx) TRY_VOID(open_ucx_channel());
    fetcher_ = std::make_unique<BlockFetcher>(format_, options_.one_host, options_.ucx, cache_.write,
                                              cache_.native, done);
  } else {
    TRY_VOID(VllmBlocks::check(format_));
    TRY(auto agent, NixlAgent::start(options_.nixl_library, options_.nixl_backend));
    fetcher_ = std::make_unique<VllmFetcher>(format_, std::move(agent), cache_.allocate, cache_.write, done);
  }
  keeper_ = std::make_unique<LeaseKeeper>(
      std::chrono::seconds(options_.lease_seconds),
      [this](const std::string& host, int port, const std::vector<std::string>& leases) {
        return fetcher_->renew(host, port, leases);
      });
  return {};
}

Result<> PeerConnector::listen() {
  auto server = BlockServer::start(
      {.host = options_.host, .port = *options_.port, .engine_id = options_.engine_id, .format = format_},
      leases_, cache_.read, cache_.native, cache_.wake);
  if (!server) return field_failure("", server.error().code, "side channel {}", server.error().message);
  server_ = *std::move(server);
  log_info("KV blocks of engine {} at {}", options_.engine_id,
           http::host_and_port(options_.host, server_->port()));
  return {};
}

// Returns true if a producer has leased blocks of the prompt to this engine.
bool PeerConnector::leased(const KvPrompt& prompt) const {
  return fetcher_ != nullptr && prompt.params != nullptr && prompt.params->do_remote_prefill &&
         names_blocks(*prompt.params);
}

std::optional<int> PeerConnector::matched(const KvPrompt& prompt) {
  if (fetcher_ == nullptr || prompt.params == nullptr || !prompt.params->do_remote_prefill) return 0;
  if (!names_blocks(*prompt.params)) {
    log(LogLevel::debug, "request {}: kv_transfer_params name no blocks, so this engine computes the prompt",
        prompt.name);
    return 0;
  }
  if (!options_.nixl_backend.empty() && !matches_vllms_prompt(prompt)) return 0;
  return static_cast<int>(std::min(blocks_of(format_, *prompt.params), prompt.keys.size()));
}

void PeerConnector::wait(const KvPrompt& prompt) {
  if (matched(prompt) > 0) keeper_->keep(prompt.id, *prompt.params);
}

void PeerConnector::load(LoadTask task) {
  keeper_->keep(task.id, task.from);  // renews the lease until the blocks are loaded
  fetcher_->post(std::move(task));
}

bool PeerConnector::worth_loading(int blocks, std::span<const Hash128>, double) {
  return blocks * format_.block_size > options_.recompute_threshold;
}

// Ends the lease, because the engine does not fetch the blocks. A prompt without a full block also has a
// lease.
void PeerConnector::decline(const KvPrompt& prompt) {
  if (!leased(prompt)) return;
  keeper_->let_go(prompt.id);
  fetcher_->post({.from = *prompt.params});
}

bool PeerConnector::wants(const KvPrompt& prompt) {
  return server_ != nullptr && prompt.params != nullptr && prompt.params->do_remote_decode;
}

std::optional<KvTransferParams> PeerConnector::store(const KvPrompt& prompt, StoreTask task,
                                                     std::int64_t now_us) {
  const std::string secret = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  KvTransferParams params{.do_remote_prefill = true,
                          .remote_engine_id = options_.engine_id,
                          .remote_request_id = fmt::format("{}-{}-{}", prompt.name, prompt.id, secret),
                          .remote_host = options_.host,
                          .remote_port = server_->port(),
                          .remote_block_ids = ids_of(format_, task),
                          .remote_num_tokens = prompt.tokens};
  if (!task.blocks.empty())
    leases_.add(params.remote_request_id,
                {.blocks = std::move(task.blocks),
                 .keys = std::move(task.keys),
                 .owner = task.owner,
                 .text = {prompt.text.begin(), prompt.text.end()},
                 .identity = prompt.identity},
                now_us);
  return params;
}

std::vector<std::uint64_t> PeerConnector::take_stored(std::int64_t now_us) {
  std::vector<std::uint64_t> owners = leases_.take_ended(now_us);
  owners.insert(owners.end(), given_way_.begin(), given_way_.end());
  given_way_.clear();
  return owners;
}

// Ends the lease that expires first: its blocks are the least likely to be fetched.
bool PeerConnector::give_way() {
  const auto owner = leases_.end_first();
  if (owner) given_way_.push_back(*owner);
  return owner.has_value();
}

void PeerConnector::note(const LoadResult& result) {
  if (result.loaded == 0 || result.failure) return;
  const std::lock_guard lock(mutex_);
  loads_.seconds.observe(result.seconds);
  loads_.bytes.observe(static_cast<double>(result.bytes));
  loads_.blocks.observe(result.loaded);
}

void PeerConnector::add_stats(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.kv_transfer.seconds = loads_.seconds;
  stats.kv_transfer.bytes = loads_.bytes;
  stats.kv_transfer.blocks = loads_.blocks;
  stats.kv_transfer.expired = leases_.expired();
}

}  // namespace octavo
