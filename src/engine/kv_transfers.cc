#include "engine/kv_transfers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace octavo {
namespace {

constexpr std::string_view kField = "kv_transfer_config";
constexpr int kPort = 5600;

Result<> check(const KvTransferOptions& options, const SchedulerOptions& scheduler) {
  if (!scheduler.enable_prefix_caching)
    return invalid(kField,
                   "needs prefix caching, which is off for this model or by --no-enable-prefix-caching");
  if (options.produces && (options.host == "0.0.0.0" || options.host == "::"))
    return invalid(kField,
                   "the side channel's host must be an address that other engines can reach, got {:?}",
                   options.host);
  return {};
}

// Names of blocks say nothing of images: prompts with any are computed where they are needed.
bool may_travel(const Accepted& accepted) { return accepted.request.images.empty(); }

}  // namespace

Result<std::unique_ptr<KvTransfers>> KvTransfers::start(KvTransferOptions options, int engine,
                                                        Scheduler& scheduler, Executor& executor,
                                                        std::function<void()> wake) {
  TRY_VOID(check(options, scheduler.options()));
  auto format = executor.block_format();
  if (!format) return field_failure(kField, format.error().code, "{}", format.error().message);
  if (options.engine_id.empty())
    options.engine_id = fmt::format("{:016x}{:016x}", secret_seed(), secret_seed());
  if (options.host.empty()) options.host = "127.0.0.1";
  if (options.port != 0) options.port = options.port.value_or(kPort) + engine;
  std::unique_ptr<KvTransfers> transfers(
      new KvTransfers(std::move(options), *std::move(format), scheduler, executor, std::move(wake)));
  const KvTransferOptions& o = transfers->options_;
  if (!o.produces) return transfers;
  auto server = BlockServer::start(
      {.host = o.host, .port = *o.port, .engine_id = o.engine_id, .format = transfers->format_},
      transfers->leases_,
      [&executor](BlockId block, std::span<std::byte> out) { executor.export_block(block, out); },
      transfers->wake_);
  if (!server) return field_failure(kField, server.error().code, "side channel {}", server.error().message);
  transfers->server_ = *std::move(server);
  log_info("KV blocks of engine {} at {}:{}", o.engine_id, o.host, transfers->server_->port());
  return transfers;
}

KvTransfers::KvTransfers(KvTransferOptions options, BlockFormat format, Scheduler& scheduler,
                         Executor& executor, std::function<void()> wake)
    : options_(std::move(options)),
      format_(std::move(format)),
      scheduler_(scheduler),
      wake_(std::move(wake)),
      hasher_({.algorithm = HashAlgorithm::sha256, .seed = 0}, format_.block_size),
      leases_(options_.lease_seconds) {
  stats_.enabled = true;
  if (!options_.consumes) return;
  fetcher_ = std::make_unique<BlockFetcher>(
      format_, options_.shared_memory,
      [&executor](BlockId block, std::span<const std::byte> bytes) { executor.import_block(block, bytes); },
      [this](FetchResult result) {
        {
          const std::lock_guard lock(mutex_);
          results_.push_back(std::move(result));
        }
        wake_();
      });
}

// Threads first: nobody reads or writes blocks any more.
KvTransfers::~KvTransfers() {
  fetcher_.reset();
  server_.reset();
  for (auto& [owner, hold] : leased_) let_go(hold);
  for (auto& [id, entry] : imports_) let_go(entry.hold);
}

void KvTransfers::let_go(PrefixHold*& hold) {
  if (hold == nullptr) return;
  stats_.held_blocks -= static_cast<int>(hold->keys.size());
  scheduler_.let_go(std::exchange(hold, nullptr));
}

// Names of blocks that all engines agree on.
std::vector<Hash128> KvTransfers::transfer_keys(const Accepted& accepted, int blocks) const {
  std::vector<Hash128> keys;
  const std::span<const TokenId> prompt(accepted.request.prompt);
  hasher_.extend(prompt.first(static_cast<std::size_t>(blocks * format_.block_size)), accepted.identity,
                 keys);
  return keys;
}

bool KvTransfers::ready(const std::shared_ptr<const Accepted>& accepted, std::int64_t now_us) {
  const std::optional<KvTransferParams>& from = accepted->request.kv_transfer;
  if (fetcher_ == nullptr || !from || !from->do_remote_prefill || accepted->scheduled || !may_travel(*accepted))
    return true;
  const std::int64_t give_up_us =
      now_us + std::int64_t{options_.lease_seconds} * 500'000;  // half of the lease
  const auto [place, is_new] =
      imports_.try_emplace(accepted->id, Import{.accepted = accepted, .give_up_us = give_up_us});
  if (is_new) place->second.state = begin_fetch(place->second, now_us);
  return place->second.state == Import::State::done;
}

KvTransfers::Import::State KvTransfers::begin_fetch(Import& entry, std::int64_t now_us) {
  const Accepted& accepted = *entry.accepted;
  const KvTransferParams& from = *accepted.request.kv_transfer;
  if (from.remote_engine_id.empty() || from.remote_request_id.empty() || from.remote_host.empty() ||
      from.remote_port == 0 || from.remote_block_ids.empty() || from.remote_block_ids[0].empty()) {
    log(LogLevel::debug, "request {}: kv_transfer_params name no blocks, its prompt is computed here",
        accepted.request.name);
    return Import::State::done;
  }
  const std::vector<TokenId>& prompt = accepted.request.prompt;
  const int own = (static_cast<int>(prompt.size()) - 1) / format_.block_size;
  const int there =
      static_cast<int>(std::min(from.remote_block_ids[0].size(), static_cast<std::size_t>(own)));
  PrefixHold* hold = scheduler_.hold(prompt, accepted.identity, there);
  if (hold == nullptr && now_us < entry.give_up_us) return Import::State::no_room;
  if (hold == nullptr) {
    fail(accepted, KvTransferFailure::no_blocks, "no free blocks");
    give_lease_back(from);
    return Import::State::done;
  }
  const int missing = (there - hold->cached) * format_.block_size;
  if (missing <= options_.recompute_threshold) {
    scheduler_.let_go(hold);
    give_lease_back(from);
    return Import::State::done;
  }
  stats_.queries += missing;
  stats_.held_blocks += there;
  entry.hold = hold;
  const std::span<const BlockId> table = hold->blocks.table(0);
  fetcher_->post({.id = accepted.id,
                  .from = from,
                  .first = hold->cached,
                  .keys = transfer_keys(accepted, there),
                  .blocks = {table.begin() + hold->cached, table.end()},
                  .cancelled = entry.cancelled});
  return Import::State::fetching;
}

// Nobody will fetch its blocks.
void KvTransfers::give_lease_back(const KvTransferParams& from) { fetcher_->post({.from = from}); }

void KvTransfers::fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message) {
  ++stats_.failures[static_cast<std::size_t>(reason)];
  log_warning("request {}: its prompt is computed here, the KV transfer failed ({}): {}",
              accepted.request.name, kKvTransferFailureNames[static_cast<std::size_t>(reason)], message);
}

std::optional<KvTransferParams> KvTransfers::offer(const Accepted& accepted, std::int64_t now_us) {
  const std::optional<KvTransferParams>& asked = accepted.request.kv_transfer;
  if (server_ == nullptr || !asked || !asked->do_remote_decode || !may_travel(accepted)) return std::nullopt;
  KvTransferParams told{.do_remote_prefill = true,
                        .remote_engine_id = options_.engine_id,
                        .remote_request_id = fmt::format("{}-{}", accepted.request.name, accepted.id),
                        .remote_host = options_.host,
                        .remote_port = server_->port(),
                        .remote_block_ids = {{}},
                        .remote_num_tokens = std::ssize(accepted.request.prompt)};
  PrefixHold* hold = scheduler_.hold(accepted.request.prompt, accepted.identity, 0);
  if (hold == nullptr) return told;
  const std::span<const BlockId> blocks = hold->blocks.table(0);
  if (blocks.empty()) {
    scheduler_.let_go(hold);
    return told;
  }
  told.remote_block_ids[0].assign(blocks.begin(), blocks.end());
  stats_.held_blocks += static_cast<int>(blocks.size());
  leased_[++last_lease_] = hold;
  leases_.add(told.remote_request_id,
              {.blocks = {blocks.begin(), blocks.end()},
               .keys = transfer_keys(accepted, static_cast<int>(blocks.size())),
               .owner = last_lease_},
              now_us);
  return told;
}

std::vector<RequestId> KvTransfers::advance(std::int64_t now_us) {
  for (const std::uint64_t owner : leases_.take_ended(now_us)) let_go(leased_.extract(owner).mapped());
  std::vector<FetchResult> results;
  {
    const std::lock_guard lock(mutex_);
    results.swap(results_);
  }
  std::vector<RequestId> ready;
  for (const FetchResult& result : results) {
    take(result);
    ready.push_back(result.id);
  }
  retry(now_us, ready);
  for (auto entry = imports_.begin(); entry != imports_.end();) {
    const auto next = std::next(entry);
    const Accepted& accepted = *entry->second.accepted;
    const bool over = accepted.scheduled || accepted.unfinished == 0;
    if (over) entry->second.cancelled->store(true);
    if (over && entry->second.state != Import::State::fetching) {
      let_go(entry->second.hold);
      imports_.erase(entry);
    }
    entry = next;
  }
  return ready;
}

// Whether there is room now for those that have waited longest. Where nothing runs there will be no more.
void KvTransfers::retry(std::int64_t now_us, std::vector<RequestId>& ready) {
  const auto is = [](Import::State state) {
    return [=](const auto& entry) { return entry.second.state == state; };
  };
  for (;;) {
    const auto first = std::ranges::find_if(imports_, is(Import::State::no_room));
    if (first == imports_.end()) return;
    Import& entry = first->second;
    const SchedulerStats s = scheduler_.stats();
    if (s.running + s.waiting == 0 && std::ranges::none_of(imports_, is(Import::State::fetching)))
      entry.give_up_us = 0;
    entry.state = entry.accepted->unfinished == 0 ? Import::State::done : begin_fetch(entry, now_us);
    if (entry.state == Import::State::no_room) return;
    if (entry.state == Import::State::done) ready.push_back(first->first);
  }
}

void KvTransfers::take(const FetchResult& result) {
  Import& entry = imports_.at(result.id);
  entry.state = Import::State::done;
  if (result.failure && !*entry.cancelled) fail(*entry.accepted, *result.failure, result.message);
  if (result.fetched == 0) return let_go(entry.hold);
  scheduler_.publish(*entry.hold, entry.hold->cached + result.fetched);
  stats_.hits += std::int64_t{result.fetched} * format_.block_size;
  if (result.failure) return;
  stats_.seconds.observe(result.seconds);
  stats_.bytes.observe(static_cast<double>(result.bytes));
  stats_.blocks.observe(result.fetched);
}

// Leases first, the oldest: whoever has not come for it by now is the least likely to come. Then what was
// fetched for those who wait longest for their turn yet.
bool KvTransfers::give_way() {
  if (const auto owner = leases_.end_first()) {
    let_go(leased_.extract(*owner).mapped());
    return true;
  }
  const auto entry = std::find_if(imports_.rbegin(), imports_.rend(), [](const auto& each) {
    return each.second.state == Import::State::done && each.second.hold != nullptr;
  });
  if (entry == imports_.rend()) return false;
  let_go(entry->second.hold);
  return true;
}

void KvTransfers::add_stats(EngineStats& stats) const {
  stats.kv_transfer = stats_;
  stats.kv_transfer.expired = leases_.expired();
}

}  // namespace octavo
