// Prefix holds: blocks that the scheduler keeps in the cache although no sequence uses them.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace octavo {

PrefixHold* Scheduler::hold(std::span<const TokenId> prompt, Hash128 identity, int blocks,
                            std::span<const Hash128> extras) {
  std::vector<Hash128> keys;
  hasher_.extend(prompt, identity, keys, extras);
  // Looks up the prompt in the same way as for a sequence: the last token is never taken from the cache.
  promised_ = 0;
  for (const Slot slot : running_) promised_ += promise(at(slot));
  int wanted = 0, needed = 0;
  do {
    find_prefix(cache_, {prompt, keys, identity, extras}, match_);
    wanted = std::max(blocks, match_.blocks);
    CHECK(wanted <= static_cast<int>(keys.size()), "{} blocks of {}", wanted, keys.size());
    const int added = SequenceBlocks::missing_of_prefix(cache_, match_, wanted * options_.block_size);
    needed = match_.unreferenced + match_.lent + added;
  } while (needed > spare() && can_reclaim(needed - spare()) && reclaim(needed - spare()));
  if (needed > spare()) return nullptr;
  const int tokens = wanted * options_.block_size;
  int state_slot = match_.state_slot;
  if (cache_.saved_states && wanted > match_.blocks) {
    state_slot = cache_.saved_states->take();
    if (state_slot == kNoState) return nullptr;
  } else if (state_slot != kNoState) {
    cache_.saved_states->pin(state_slot);
  }

  PrefixHold& hold = keep(std::make_unique<PrefixHold>());
  hold.tokens.assign(prompt.begin(), prompt.begin() + tokens);
  hold.identity = identity;
  hold.extras.assign(extras.begin(), extras.end());
  keys.resize(static_cast<std::size_t>(wanted));
  hold.keys = std::move(keys);
  hold.cached = match_.blocks;
  hold.blocks = SequenceBlocks(cache_, tokens);
  hold.state_slot = state_slot;
  hold.blocks.adopt(match_);
  CHECK(hold.blocks.reserve_prefix(tokens));
  count_held(hold, 1);
  return &hold;
}

PrefixHold& Scheduler::keep(std::unique_ptr<PrefixHold> hold) {
  PrefixHold& kept = *hold;
  holds_.all.emplace(&kept, std::move(hold));
  return kept;
}

// Adds (sign 1) or removes (sign -1) the hold's blocks of sliding-window groups to the counts of lent().
void Scheduler::count_held(const PrefixHold& hold, int sign) {
  for (int g = 0; g < cache_.group_count(); ++g) {
    if (cache_.group(g).window == 0) continue;
    for (const BlockId block : hold.blocks.table(g)) {
      if (block == kNoBlock) continue;
      int& holds = holds_.of_block[static_cast<std::size_t>(block)];
      const int others = sign > 0 ? holds : holds - 1;
      if (others > 0) holds_.extra += sign;
      holds += sign;
    }
  }
}

void Scheduler::publish(PrefixHold& hold, int blocks) {
  hold.blocks.publish(blocks * options_.block_size, hold.history());
  if (hold.state_slot == kNoState || hold.is_whole() || blocks < std::ssize(hold.keys)) return;
  cache_.saved_states->keep(hold.state_slot, hold.blocks.tip());
  hold.state_slot = cache_.saved_states->find(hold.blocks.tip());
  cache_.saved_states->pin(hold.state_slot);
  hold.cached = blocks;
}

PrefixHold* Scheduler::share(const PrefixHold& hold) {
  CHECK(hold.is_whole(), "{} of {} blocks", hold.cached, hold.keys.size());
  PrefixHold& other = keep(std::make_unique<PrefixHold>(hold));
  for (int g = 0; g < cache_.group_count(); ++g)
    for (const BlockId block : other.blocks.table(g))
      if (block != kNoBlock) cache_.pool.acquire(block);
  count_held(other, 1);
  if (other.state_slot != kNoState) cache_.saved_states->pin(other.state_slot);
  return &other;
}

bool Scheduler::can_shorten() const {
  return !cache_.saved_states &&
         std::ranges::all_of(options_.groups, [](const CacheGroup& group) { return group.window == 0; });
}

void Scheduler::shorten(PrefixHold& hold, int blocks) {
  CHECK(can_shorten() && hold.is_whole() && blocks <= hold.cached, "{} of {} blocks", blocks, hold.cached);
  given_up_.clear();
  hold.blocks.shorten(blocks, given_up_);
  for (const BlockId block : given_up_) cache_.pool.release(block);
  hold.cached = blocks;
  hold.keys.resize(static_cast<std::size_t>(blocks));
  hold.tokens.resize(static_cast<std::size_t>(blocks * options_.block_size));
}

void Scheduler::let_go(PrefixHold* hold) {
  if (hold->state_slot != kNoState) {
    SavedStates& states = *cache_.saved_states;
    hold->is_whole() ? states.unpin(hold->state_slot) : states.give_back(hold->state_slot);
  }
  count_held(*hold, -1);
  given_up_.clear();
  hold->blocks.give_up(given_up_);
  for (const BlockId block : given_up_) cache_.pool.release(block);
  holds_.all.erase(hold);
}

}  // namespace octavo
