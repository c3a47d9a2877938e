// The part of the scheduler that keeps blocks for others than its sequences.
#include <algorithm>

#include "base/check.h"
#include "schedule/scheduler.h"

namespace octavo {

PrefixHold* Scheduler::hold(std::span<const TokenId> prompt, Hash128 identity, int blocks) {
  std::vector<Hash128> keys;
  hasher_.extend(prompt, identity, keys);
  // As a sequence looks it up: its last token is left over.
  find_prefix(cache_, {prompt, keys, identity}, match_);
  const int wanted = std::max(blocks, match_.blocks);
  CHECK(wanted <= static_cast<int>(keys.size()), "{} blocks of {}", wanted, keys.size());
  promised_ = 0;
  for (const Slot slot : running_) promised_ += promise(at(slot));
  const int added = (wanted - match_.blocks) * cache_.group_count();
  if (match_.unreferenced + match_.lent + added > spare()) return nullptr;

  const int tokens = wanted * options_.block_size;
  PrefixHold& hold = holds_.emplace_back();
  hold.tokens.assign(prompt.begin(), prompt.begin() + tokens);
  hold.identity = identity;
  keys.resize(static_cast<std::size_t>(wanted));
  hold.keys = std::move(keys);
  hold.cached = match_.blocks;
  hold.blocks = SequenceBlocks(cache_, tokens);
  hold.blocks.adopt(match_);
  CHECK(hold.blocks.reserve(tokens));
  return &hold;
}

void Scheduler::publish(PrefixHold& hold, int blocks) {
  hold.blocks.publish(blocks * options_.block_size, hold.history());
}

void Scheduler::let_go(PrefixHold* hold) {
  given_up_.clear();
  hold->blocks.give_up(given_up_);
  for (const BlockId block : given_up_) cache_.pool.release(block);
  std::erase_if(holds_, [&](const PrefixHold& other) { return &other == hold; });
}

}  // namespace octavo
