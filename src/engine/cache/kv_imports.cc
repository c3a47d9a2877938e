#include "engine/cache/kv_imports.h"

#include <algorithm>
#include <utility>

#include "transfer/kv_pieces.h"

namespace octavo {
namespace {

// Returns whether the request may use the prefix cache. With prompt logprobs, every position must be
// computed.
bool reads_cache(const Request& request) {
  return request.read_prefix_cache && !request.sampling.logprobs.of_prompt();
}

}  // namespace

bool KvImports::ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us) {
  if (accepted->scheduled || !may_travel(*accepted)) return true;
  const auto [found, is_new] =
      imports_.try_emplace(accepted->id, KvImport{.accepted = accepted, .give_up_us = now_us + room_us_});
  KvImport& import = found->second;
  if (is_new) {
    import.keys = side_.keys_of(*accepted, accepted->request.prompt);
    import.cached = side_.cached_blocks(*accepted);
    import.state = begin(import, now_us);
  }
  return import.may_start();
}

// Starts the load, or returns the state in which the request must wait. Never returns GivenUp.
KvImport::State KvImports::begin(KvImport& import, std::int64_t now_us) {
  const Accepted& accepted = *import.accepted;
  const KvPrompt prompt = side_.prompt_of(accepted, accepted.request.prompt, import.keys, import.cached);
  if (!reads_cache(accepted.request)) return compute(prompt);
  const std::optional<Source> source = best_source(prompt);
  if (!source) return KvImport::LookingUp{};
  if (source->connector == nullptr) return compute(prompt);
  PrefixHold* held = side_.hold(accepted, accepted.request.prompt, source->blocks);
  if (held != nullptr) return load(import, prompt, *source, held);
  if (now_us < import.give_up_us) {
    source->connector->wait(prompt);
    return KvImport::NoRoom{};
  }
  side_.fail(accepted, KvTransferFailure::no_blocks, "the KV cache has no free blocks");
  return compute(prompt);
}

// Returns the connector that can load the most blocks, or nullopt if a connector has not reported its
// number of blocks yet.
std::optional<KvImports::Source> KvImports::best_source(const KvPrompt& prompt) const {
  Source best;
  for (const auto& connector : side_.connectors) {
    const std::optional<int> blocks = connector->matched(prompt);
    if (!blocks) return std::nullopt;
    if (*blocks > best.blocks) best = {connector.get(), *blocks};
  }
  return best;
}

KvImport::State KvImports::load(KvImport& import, const KvPrompt& prompt, const Source& source,
                                PrefixHold* held) {
  const int missing = source.blocks - held->cached;
  const bool others_load = missing > 0 && loads(import.keys[static_cast<std::size_t>(held->cached)]);
  const BlockFormat& format = side_.format;
  const std::vector<KvPiece> all = pieces_of(format, 0, source.blocks);
  std::vector<KvPiece> wanted = pieces_of(format, held->cached, source.blocks);
  if (missing <= 0 || others_load ||
      !source.connector->worth_loading(missing, piece_keys(wanted, import.keys), compute_seconds_)) {
    side_.scheduler.let_go(held);
    if (!others_load) return compute(prompt);
    source.connector->wait(prompt);
    return KvImport::Behind{};
  }
  decline_all(prompt, source.connector);
  side_.stats.queries += std::int64_t{missing} * format.block_size;
  side_.count_held(*held);
  source.connector->load({.id = prompt.id,
                          .from = import.accepted->request.kv_transfer.value_or(KvTransferParams{}),
                          .first = static_cast<int>(all.size() - wanted.size()),
                          .keys = piece_keys(all, import.keys),
                          .blocks = locations_of(format, *held, wanted),
                          .cancelled = import.cancelled});
  return KvImport::Loading{{held, std::move(wanted)}};
}

KvImport::State KvImports::compute(const KvPrompt& prompt) {
  decline_all(prompt);
  return KvImport::Done{};
}

KvImport::State KvImports::give_up(const KvImport& import) {
  return compute(side_.prompt_of(*import.accepted, import.accepted->request.prompt, import.keys));
}

void KvImports::decline_all(const KvPrompt& prompt, const KvConnector* except) {
  for (const auto& connector : side_.connectors)
    if (connector.get() != except) connector->decline(prompt);
}

bool KvImports::any_loads() const {
  return std::ranges::any_of(imports_,
                             [](const auto& each) { return each.second.template is<KvImport::Loading>(); });
}

bool KvImports::loads(Hash128 key) const {
  return std::ranges::any_of(imports_, [&](const auto& each) {
    const auto* loading = std::get_if<KvImport::Loading>(&each.second.state);
    if (loading == nullptr || *each.second.cancelled) return false;
    const auto first = static_cast<std::size_t>(loading->hold->cached);
    const auto keys = std::span(each.second.keys).subspan(first, loading->hold->keys.size() - first);
    return std::ranges::find(keys, key) != keys.end();
  });
}

void KvImports::add_result(LoadResult result) {
  const std::lock_guard lock(mutex_);
  results_.push_back(std::move(result));
}

std::vector<RequestId> KvImports::advance(std::int64_t now_us, double compute_seconds) {
  compute_seconds_ = compute_seconds;
  std::vector<RequestId> ready;
  take_results(ready);
  give_up_stuck(now_us, ready);
  retry<KvImport::LookingUp>(now_us, ready);
  retry<KvImport::NoRoom>(now_us, ready);
  // Requests in the state Behind wait for the load of another request. They are tried again when a load has
  // ended, or when there is no load, because the other request may have stopped waiting for free blocks.
  if (!ready.empty() || !any_loads()) retry<KvImport::Behind>(now_us, ready);
  drop(false);
  return ready;
}

void KvImports::take_results(std::vector<RequestId>& ready) {
  std::vector<LoadResult> results;
  {
    const std::lock_guard lock(mutex_);
    results.swap(results_);
  }
  for (const LoadResult& result : results) {
    KvImport& import = imports_.at(result.id);
    if (import.is<KvImport::Loading>()) ready.push_back(result.id);
    take(import, result);
  }
}

void KvImports::take(KvImport& import, const LoadResult& result) {
  if (result.failure && !*import.cancelled) side_.fail(*import.accepted, *result.failure, result.message);
  const auto [hold, pieces] = std::move(*import.transfer());
  KvImport::Done done{hold};
  const auto count = static_cast<std::size_t>(result.loaded);
  const int end = count == pieces.size() ? static_cast<int>(hold->keys.size()) : pieces[count].block;
  if (const int loaded = end - hold->cached; loaded == 0) {
    side_.let_go(done.hold);
  } else {
    note_loaded(side_.scheduler, *hold, end - loaded, end, side_.loaded);
    side_.scheduler.publish(*hold, end);
    note_hits(*import.accepted, std::int64_t{loaded} * side_.format.block_size, result);
    import.accepted->shared_cost[CostUnit::kv_bytes_loaded] += result.loaded * side_.format.bytes;
    side_.report_stored(*hold, import.keys);
  }
  import.state = done;
}

// The pieces of one block may come from two sources, so the loaded tokens are divided among the sources in
// proportion to the pieces.
void KvImports::note_hits(Accepted& accepted, std::int64_t tokens, const LoadResult& result) {
  side_.stats.hits += tokens;
  std::int64_t pieces = 0, before = 0;
  for (std::size_t source = 0; source < result.from.size(); ++source) {
    pieces += result.from[source];
    const std::int64_t until = tokens * pieces / result.loaded;
    accepted.loaded[source] += until - before;
    before = until;
  }
}

// Stops waiting for loads that are stuck. Keeps their blocks, because a transfer may still write to them.
void KvImports::give_up_stuck(std::int64_t now_us, std::vector<RequestId>& ready) {
  for (const auto& connector : side_.connectors)
    for (const RequestId id : connector->take_stuck(now_us)) {
      const auto found = imports_.find(id);
      if (found == imports_.end() || !found->second.is<KvImport::Loading>()) continue;
      KvImport& import = found->second;
      if (!import.cancelled->exchange(true))
        side_.fail(*import.accepted, KvTransferFailure::lost, "the other engine or the tier does not answer");
      KvImport::Transfer transfer = std::move(*import.transfer());
      import.state = KvImport::GivenUp{std::move(transfer)};
      ready.push_back(id);
    }
}

// Tries the waiting requests again in order of arrival, until there are too few free blocks for one of
// them. If no sequence is running, no more blocks will become free, so that request stops waiting.
template <class Waiting>
void KvImports::retry(std::int64_t now_us, std::vector<RequestId>& ready) {
  for (auto& [id, import] : imports_) {
    if (!import.template is<Waiting>()) continue;
    const SchedulerStats s = side_.scheduler.stats();
    if (s.running + s.waiting == 0 && !any_loads()) import.give_up_us = 0;
    import.state = import.accepted->unfinished == 0 ? give_up(import) : begin(import, now_us);
    if (import.template is<KvImport::Done>()) ready.push_back(id);
    if (import.template is<KvImport::NoRoom>()) return;
  }
}

// Removes the imports of requests that are scheduled or have ended. If `done` is set, also removes imports
// that neither wait nor hold blocks.
void KvImports::drop(bool done) {
  for (auto entry = imports_.begin(); entry != imports_.end();) {
    const auto next = std::next(entry);
    KvImport& import = entry->second;
    if (import.ended()) *import.cancelled = true;
    if (import.ended() && !import.may_start() && !import.is<KvImport::Loading>())
      import.state = give_up(import);
    auto* finished = std::get_if<KvImport::Done>(&import.state);
    if (finished != nullptr && (import.ended() || (done && finished->hold == nullptr))) {
      side_.let_go(finished->hold);
      imports_.erase(entry);
    }
    entry = next;
  }
}

bool KvImports::give_way() {
  const auto entry = std::find_if(imports_.rbegin(), imports_.rend(),
                                  [](const auto& each) { return each.second.has_room(); });
  if (entry == imports_.rend()) return false;
  side_.let_go(std::get<KvImport::Done>(entry->second.state).hold);
  return true;
}

void KvImports::cancel_all() {
  for (auto& [id, import] : imports_) *import.cancelled = true;
}

void KvImports::let_go_all() {
  for (auto& [id, import] : imports_) {
    if (KvImport::Transfer* transfer = import.transfer()) side_.let_go(transfer->hold);
    if (auto* done = std::get_if<KvImport::Done>(&import.state)) side_.let_go(done->hold);
  }
  imports_.clear();
}

}  // namespace octavo
