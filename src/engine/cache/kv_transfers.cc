#include "engine/cache/kv_transfers.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transfer/kv_pieces.h"
#include "transfer/start_connectors.h"

namespace octavo {
namespace {

constexpr std::string_view kField = "kv_transfer_config";

// False for a prompt with a cross-attention source (a sound or an encoder prompt): its block names do not
// cover the source.
bool may_travel(const Accepted& accepted) {
  return std::ranges::none_of(accepted.request.media, [](const MediaPart& part) { return part.tokens == 0; });
}

// Another engine computes the last token itself.
std::span<const TokenId> others_may_want(const Request& request) {
  return std::span(request.prompt).first(request.prompt.size() - 1);
}

// True if the request may use the prefix cache.
bool reads_cache(const Request& request) {
  return request.read_prefix_cache && !request.sampling.prompt_logprobs;
}

}  // namespace

Result<std::unique_ptr<KvTransfers>> KvTransfers::start(const KvTransferOptions& options, int engine,
                                                        Scheduler& scheduler, Executor& executor,
                                                        KvEventLog* events, std::function<void()> wake) {
  if (!scheduler.options().enable_prefix_caching)
    return invalid(kField,
                   "needs prefix caching, which is off for this model or by --no-enable-prefix-caching");
  auto format = executor.block_format();
  if (!format) return field_failure(kField, format.error().code, "{}", format.error().message);
  std::unique_ptr<KvTransfers> transfers(
      new KvTransfers(*std::move(format), options.lease_seconds / 2, scheduler, events, std::move(wake)));
  auto connectors = start_connectors(options, {.format = transfers->format_,
                                               .engine = engine,
                                               .cache_blocks = scheduler.options().num_blocks,
                                               .in_host_memory = executor.in_host_memory(),
                                               .cache = transfers->access(executor)});
  if (!connectors) return field_failure(kField, connectors.error().code, "{}", connectors.error().message);
  transfers->connectors_ = *std::move(connectors);
  return transfers;
}

KvTransfers::KvTransfers(BlockFormat format, int give_up_seconds, Scheduler& scheduler, KvEventLog* events,
                         std::function<void()> wake)
    : format_(std::move(format)),
      give_up_us_(std::int64_t{give_up_seconds} * 1'000'000),
      scheduler_(scheduler),
      wake_(std::move(wake)),
      events_(events, std::max(1, group_count(format_))) {
  stats_.enabled = true;
}

CacheAccess KvTransfers::access(Executor& executor) {
  return {.read = [&executor](KvPlace place, std::span<std::byte> out) { executor.export_piece(place, out); },
          .write = [&executor](KvPlace place,
                               std::span<const std::byte> bytes) { executor.import_piece(place, bytes); },
          .native = executor.native_blocks(),
          .allocate = [&executor](std::size_t bytes) { return executor.allocate_staging(bytes); },
          .loaded =
              [this](LoadResult result) {
                {
                  const std::lock_guard lock(mutex_);
                  results_.push_back(std::move(result));
                }
                wake_();
              },
          .wake = wake_};
}

// Connectors stop first, so that no thread reads or writes blocks any more.
KvTransfers::~KvTransfers() {
  for (auto& [id, entry] : imports_) *entry.cancelled = true;  // cancel loads in flight
  connectors_.clear();
  for (auto& [owner, entry] : exports_) let_go(entry.hold);
  for (auto& [id, entry] : imports_) let_go(entry.hold);
}

void KvTransfers::let_go(PrefixHold*& hold) {
  if (hold == nullptr) return;
  stats_.held_blocks -= static_cast<int>(hold->keys.size());
  scheduler_.let_go(std::exchange(hold, nullptr));
}

std::vector<Hash128> KvTransfers::keys_of(const Accepted& accepted) const {
  return transfer_keys(others_may_want(accepted.request), accepted.identity, format_.block_size,
                       extras_of(accepted));
}

std::vector<Hash128> KvTransfers::extras_of(const Accepted& accepted) const {
  return media_identities(accepted.identity, accepted.request.media, format_.block_size);
}

PrefixHold* KvTransfers::hold(const Accepted& accepted, int blocks) {
  return scheduler_.hold(accepted.request.prompt, accepted.identity, blocks, extras_of(accepted));
}

std::vector<KvPlace> KvTransfers::places_of(const PrefixHold& hold, std::span<const KvPiece> pieces) const {
  std::vector<KvPlace> places;
  for (const KvPiece& piece : pieces)
    places.push_back({piece.part, piece.part < group_count(format_)
                                      ? hold.blocks.table(piece.part)[static_cast<std::size_t>(piece.block)]
                                      : hold.state_slot});
  return places;
}

KvPrompt KvTransfers::prompt_of(const Accepted& accepted, std::span<const Hash128> keys, int cached) const {
  return {
      .id = accepted.id,
      .name = accepted.request.name,
      .tokens = static_cast<int>(accepted.request.prompt.size()),
      .text = accepted.request.media.empty() ? others_may_want(accepted.request) : std::span<const TokenId>(),
      .identity = accepted.identity,
      .keys = keys,
      .params = accepted.request.kv_transfer ? &*accepted.request.kv_transfer : nullptr,
      .cached = cached};
}

int KvTransfers::cached_blocks(const Accepted& accepted) {
  PrefixHold* held = hold(accepted, 0);
  if (held == nullptr) return 0;
  const auto count = static_cast<int>(held->keys.size());
  scheduler_.let_go(held);
  return count;
}

bool KvTransfers::ready(const std::shared_ptr<const Accepted>& accepted, std::int64_t now_us) {
  if (accepted->scheduled || !may_travel(*accepted)) return true;
  const auto [place, is_new] =
      imports_.try_emplace(accepted->id, Import{.accepted = accepted, .give_up_us = now_us + give_up_us_});
  if (is_new) {
    place->second.keys = keys_of(*accepted);
    place->second.cached = cached_blocks(*accepted);
    place->second.state = begin_load(place->second, now_us);
  }
  return place->second.state == Import::State::done || place->second.state == Import::State::given_up;
}

int KvTransfers::checkpoint_of(const Request& request) const {
  const int tokens = static_cast<int>(request.prompt.size());
  return (tokens - 1) / format_.block_size * format_.block_size;
}

KvTransfers::Import::State KvTransfers::begin_load(Import& entry, std::int64_t now_us) {
  const Accepted& accepted = *entry.accepted;
  const KvPrompt prompt = prompt_of(accepted, entry.keys, entry.cached);
  KvConnector* from = nullptr;  // connector with the most pieces
  int there = 0;
  const auto compute = [&] {
    decline_all(prompt);
    return Import::State::done;
  };
  if (!reads_cache(accepted.request)) return compute();
  for (const auto& connector : connectors_) {
    const std::optional<int> matched = connector->matched(prompt);
    if (!matched) return Import::State::asking;
    if (*matched <= there) continue;
    from = connector.get();
    there = *matched;
  }
  if (from == nullptr) return compute();
  PrefixHold* held = hold(accepted, there);
  if (held == nullptr && now_us < entry.give_up_us) {
    from->wait(prompt);
    return Import::State::no_room;
  }
  if (held == nullptr) {
    fail(accepted, KvTransferFailure::no_blocks, "no free blocks");
    return compute();
  }
  const int missing = there - held->cached;
  const bool others_load = missing > 0 && loads(entry.keys[static_cast<std::size_t>(held->cached)]);
  const std::vector<KvPiece> all = pieces_of(format_, 0, there),
                             wanted = pieces_of(format_, held->cached, there);
  if (missing <= 0 || others_load ||
      !from->worth_loading(missing, piece_keys(wanted, entry.keys), compute_seconds_)) {
    scheduler_.let_go(held);
    if (!others_load) return compute();
    from->wait(prompt);
    return Import::State::behind;
  }
  decline_all(prompt, from);
  stats_.queries += std::int64_t{missing} * format_.block_size;
  stats_.held_blocks += there;
  entry.hold = held;
  entry.pieces = wanted;
  from->load({.id = accepted.id,
              .from = accepted.request.kv_transfer.value_or(KvTransferParams{}),
              .first = static_cast<int>(all.size() - entry.pieces.size()),
              .keys = piece_keys(all, entry.keys),
              .blocks = places_of(*held, entry.pieces),
              .cancelled = entry.cancelled});
  return Import::State::loading;
}

// Frees the blocks, which no request waits for any more.
KvTransfers::Import::State KvTransfers::give_up(const Import& entry) {
  decline_all(prompt_of(*entry.accepted, entry.keys));
  return Import::State::done;
}

void KvTransfers::decline_all(const KvPrompt& prompt, const KvConnector* but) {
  for (const auto& connector : connectors_)
    if (connector.get() != but) connector->decline(prompt);
}

bool KvTransfers::any_loads() const {
  return std::ranges::any_of(imports_,
                             [](const auto& each) { return each.second.state == Import::State::loading; });
}

// True if the block is being loaded for another request.
bool KvTransfers::loads(Hash128 key) const {
  return std::ranges::any_of(imports_, [&](const auto& each) {
    const Import& other = each.second;
    if (other.state != Import::State::loading || *other.cancelled) return false;
    const auto first = static_cast<std::size_t>(other.hold->cached);
    const auto loading = std::span(other.keys).subspan(first, other.hold->keys.size() - first);
    return std::ranges::find(loading, key) != loading.end();
  });
}

void KvTransfers::fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message) {
  ++stats_.failures[static_cast<std::size_t>(reason)];
  log_warning("request {}: its prompt is computed here, the KV transfer failed ({}): {}",
              accepted.request.name, kKvTransferFailureNames[static_cast<std::size_t>(reason)], message);
}

std::optional<KvTransferParams> KvTransfers::offer(const Accepted& accepted, std::int64_t now_us) {
  if (!may_travel(accepted)) return std::nullopt;
  std::optional<KvTransferParams> reply;
  const std::vector<Hash128> keys = keys_of(accepted);
  const KvPrompt prompt = prompt_of(accepted, keys);
  for (const auto& connector : connectors_) {
    if (!connector->wants(prompt)) continue;
    StoreTask task{.owner = ++last_owner_};
    PrefixHold* held = hold(accepted, 0);
    if (held != nullptr && held->keys.empty()) scheduler_.let_go(std::exchange(held, nullptr));
    if (held != nullptr) {
      task.prefix = static_cast<int>(held->keys.size());
      const std::vector<KvPiece> pieces = pieces_of(format_, 0, task.prefix);
      task.keys = piece_keys(pieces, keys);
      task.blocks = places_of(*held, pieces);
      stats_.held_blocks += task.prefix;
      exports_[task.owner] = {connector.get(), held, {keys.begin(), keys.begin() + task.prefix}};
    }
    if (auto told = connector->store(prompt, std::move(task), now_us)) reply = std::move(told);
  }
  return reply;
}

std::vector<RequestId> KvTransfers::advance(std::int64_t now_us, double compute_seconds) {
  compute_seconds_ = compute_seconds;
  std::vector<RequestId> ready;
  drop_imports(true);
  drop_exports(now_us);
  take_results(ready);
  give_up_stuck(now_us, ready);
  retry(Import::State::asking, now_us, ready);
  retry(Import::State::no_room, now_us, ready);
  // Also retries if the load before them ended without a result, because its request gave up waiting for
  // room.
  if (!ready.empty() || !any_loads()) retry(Import::State::behind, now_us, ready);
  drop_imports(false);
  return ready;
}

void KvTransfers::drop_exports(std::int64_t now_us) {
  for (const auto& connector : connectors_) {
    events_.tell_changes(*connector);
    for (const std::uint64_t owner : connector->take_stored(now_us)) {
      Export ended = exports_.extract(owner).mapped();
      tell_stored(*ended.hold, ended.keys);
      let_go(ended.hold);
    }
  }
}

void KvTransfers::tell_stored(const PrefixHold& hold, std::span<const Hash128> keys) {
  for (const auto& connector : connectors_) events_.tell_stored(*connector, hold, keys);
}

// Drops the imports of requests that have begun or ended. With `done`, also those with nothing to wait for or
// to keep.
void KvTransfers::drop_imports(bool done) {
  for (auto entry = imports_.begin(); entry != imports_.end();) {
    const auto next = std::next(entry);
    Import& import = entry->second;
    const bool over = import.accepted->scheduled || import.accepted->unfinished == 0;
    const bool is_loaded = import.state == Import::State::loading || import.state == Import::State::given_up;
    if (over) *import.cancelled = true;
    if (over && !is_loaded && import.state != Import::State::done) import.state = give_up(import);
    if (!is_loaded && (over || (done && import.state == Import::State::done && import.hold == nullptr))) {
      let_go(import.hold);
      imports_.erase(entry);
    }
    entry = next;
  }
}

void KvTransfers::take_results(std::vector<RequestId>& ready) {
  std::vector<LoadResult> results;
  {
    const std::lock_guard lock(mutex_);
    results.swap(results_);
  }
  for (const LoadResult& result : results) {
    const bool waits = imports_.at(result.id).state == Import::State::loading;
    take(result);
    if (waits) ready.push_back(result.id);
  }
}

// Keeps blocks that a transfer may still write.
void KvTransfers::give_up_stuck(std::int64_t now_us, std::vector<RequestId>& ready) {
  for (const auto& connector : connectors_)
    for (const RequestId id : connector->take_stuck(now_us)) {
      const auto place = imports_.find(id);
      if (place == imports_.end() || place->second.state != Import::State::loading) continue;
      Import& entry = place->second;
      if (!entry.cancelled->exchange(true))
        fail(*entry.accepted, KvTransferFailure::lost, "what they are read from does not answer");
      entry.state = Import::State::given_up;
      ready.push_back(id);
    }
}

// Retries waiting requests in the order of arrival, up to the first without room. If nothing runs, no more
// room will come.
void KvTransfers::retry(Import::State state, std::int64_t now_us, std::vector<RequestId>& ready) {
  for (auto& [id, entry] : imports_) {
    if (entry.state != state) continue;
    const SchedulerStats s = scheduler_.stats();
    if (s.running + s.waiting == 0 && !any_loads()) entry.give_up_us = 0;
    entry.state = entry.accepted->unfinished == 0 ? give_up(entry) : begin_load(entry, now_us);
    if (entry.state == Import::State::done) ready.push_back(id);
    if (entry.state == Import::State::no_room) return;
  }
}

void KvTransfers::take(const LoadResult& result) {
  Import& entry = imports_.at(result.id);
  entry.state = Import::State::done;
  if (result.failure && !*entry.cancelled) fail(*entry.accepted, *result.failure, result.message);
  // Only blocks with all their pieces.
  const auto pieces = static_cast<std::size_t>(result.loaded);
  const int end =
      pieces == entry.pieces.size() ? static_cast<int>(entry.hold->keys.size()) : entry.pieces[pieces].block;
  const int loaded = end - entry.hold->cached;
  if (loaded == 0) return let_go(entry.hold);
  scheduler_.publish(*entry.hold, end);
  stats_.hits += std::int64_t{loaded} * format_.block_size;
  tell_stored(*entry.hold, entry.keys);
}

std::int64_t KvTransfers::wake_at_us() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& connector : connectors_) first = std::min(first, connector->wake_at_us());
  return first;
}

// Frees blocks kept for other engines first. Then frees the loaded blocks of the request that will be
// scheduled last.
bool KvTransfers::give_way() {
  for (const auto& connector : connectors_)
    if (connector->give_way()) return true;  // the next advance() frees the blocks
  const auto entry = std::find_if(imports_.rbegin(), imports_.rend(), [](const auto& each) {
    return each.second.state == Import::State::done && each.second.hold != nullptr;
  });
  if (entry == imports_.rend()) return false;
  let_go(entry->second.hold);
  return true;
}

bool KvTransfers::give_up_all(std::int64_t now_us) {
  while (give_way()) drop_exports(now_us);
  drop_imports(true);
  return exports_.empty() && imports_.empty();
}

void KvTransfers::add_stats(EngineStats& stats) const {
  stats.kv_transfer = stats_;
  for (const auto& connector : connectors_) connector->add_stats(stats);
}

}  // namespace octavo
