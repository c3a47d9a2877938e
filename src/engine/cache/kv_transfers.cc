#include "engine/cache/kv_transfers.h"

#include <algorithm>
#include <utility>

#include "transfer/start_connectors.h"

namespace octavo {
namespace {

constexpr std::string_view kField = "kv_transfer_config";

}  // namespace

Result<std::unique_ptr<KvTransfers>> KvTransfers::start(const KvTransferOptions& options, int engine,
                                                        Scheduler& scheduler, Executor& executor,
                                                        KvEventLog* events, std::function<void()> wake) {
  if (!scheduler.options().enable_prefix_caching)
    return invalid(kField,
                   "needs prefix caching, which is off, because this model does not support it or "
                   "--no-enable-prefix-caching is set");
  BlockExchange* exchange = executor.block_exchange();
  if (exchange == nullptr)
    return field_failure(kField, ErrorCode::unsupported,
                         "is not supported on this device, because its KV blocks cannot be transferred");
  auto format = exchange->block_format();
  if (!format) return field_failure(kField, format.error().code, "{}", format.error().message);
  const int groups = std::max(1, group_count(*format));
  std::unique_ptr<KvTransfers> transfers(
      new KvTransfers({.format = *std::move(format), .scheduler = scheduler, .events = {events, groups}},
                      options.lease_seconds / 2, std::move(wake)));
  auto connectors = start_connectors(options, {.format = transfers->side_.format,
                                               .engine = engine,
                                               .cache_blocks = scheduler.options().num_blocks,
                                               .in_host_memory = exchange->in_host_memory(),
                                               .cache = transfers->access(*exchange)});
  if (!connectors) return field_failure(kField, connectors.error().code, "{}", connectors.error().message);
  transfers->side_.connectors = *std::move(connectors);
  return transfers;
}

KvTransfers::KvTransfers(KvCacheSide side, int room_seconds, std::function<void()> wake)
    : wake_(std::move(wake)),
      side_(std::move(side)),
      imports_(side_, std::int64_t{room_seconds} * 1'000'000),
      exports_(side_) {
  side_.stats.enabled = true;
}

CacheAccess KvTransfers::access(BlockExchange& exchange) {
  return {.read = [&exchange](KvLocation location,
                              std::span<std::byte> out) { exchange.export_piece(location, out); },
          .write = [&exchange](KvLocation location,
                               std::span<const std::byte> bytes) { exchange.import_piece(location, bytes); },
          .native = exchange.native_blocks(),
          .allocate = [&exchange](std::size_t bytes) { return exchange.allocate_staging(bytes); },
          .loaded =
              [this](LoadResult result) {
                imports_.add_result(std::move(result));
                wake_();
              },
          .wake = wake_};
}

// Destroys the connectors before blocks are freed, because their threads read and write blocks.
KvTransfers::~KvTransfers() {
  imports_.cancel_all();
  side_.connectors.clear();
  exports_.let_go_all();
  imports_.let_go_all();
}

bool KvTransfers::ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us) {
  return imports_.ready(accepted, now_us);
}

int KvTransfers::checkpoint_of(const Request& request) const {
  const int tokens = static_cast<int>(request.prompt.size());
  return (tokens - 1) / side_.format.block_size * side_.format.block_size;
}

std::optional<KvTransferParams> KvTransfers::offer(const Accepted& accepted, std::span<const TokenId> text,
                                                   std::int64_t now_us) {
  return exports_.offer(accepted, text, now_us);
}

std::vector<RequestId> KvTransfers::advance(std::int64_t now_us, double compute_seconds) {
  imports_.drop_done();
  exports_.drop(now_us);
  return imports_.advance(now_us, compute_seconds);
}

std::int64_t KvTransfers::wake_at_us() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& connector : side_.connectors) first = std::min(first, connector->wake_at_us());
  return first;
}

// Cancels a store if possible; the next advance() frees its blocks. Otherwise frees the loaded blocks of a
// waiting request.
bool KvTransfers::give_way() { return exports_.give_way() || imports_.give_way(); }

bool KvTransfers::give_up_all(std::int64_t now_us) {
  while (give_way()) exports_.drop(now_us);
  imports_.drop_done();
  return exports_.empty() && imports_.empty();
}

void KvTransfers::add_stats(EngineStats& stats) const {
  stats.kv_transfer = side_.stats;
  for (const auto& connector : side_.connectors) connector->add_stats(stats);
}

}  // namespace octavo
