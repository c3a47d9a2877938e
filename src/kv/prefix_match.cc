#include "kv/prefix_match.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr int kPrefetchDistance = 8;

BlockContent content_of(const KvCache& cache, const BlockHistory& history, int group, int block,
                        PrefixId parent) {
  const auto size = static_cast<std::size_t>(cache.pool.block_size());
  const auto index = static_cast<std::size_t>(block);
  return {group, history.keys[index], history.extra_of(index), parent,
          history.tokens.subspan(index * size, size)};
}

// For a group with full attention: walks forward, because each found block identifies the prefix before the
// next block. Returns the number of cached blocks.
int walk_forward(const KvCache& cache, const BlockHistory& history, int group, int limit,
                 PrefixMatch& match) {
  auto& table = match.tables[static_cast<std::size_t>(group)];
  PrefixId parent = kEmptyPrefix;
  for (int i = 0; i < limit; ++i) {
    const auto ahead = static_cast<std::size_t>(std::min(i + kPrefetchDistance, limit - 1));
    cache.pool.prefetch(group, history.keys[ahead]);
    const BlockId block = cache.pool.find(content_of(cache, history, group, i, parent));
    if (block == kNoBlock) return i;
    table[static_cast<std::size_t>(i)] = block;
    parent = cache.pool.prefix(block);
    match.chain[static_cast<std::size_t>(i)] = parent;
  }
  return limit;
}

// For a group with a sliding window: walks backward from block `end` through the blocks to which the next
// position attends, because each block identifies the prefix before it. Returns the index of the first
// missing block, or -1. `tip` is the content up to `end`. If `tip` is unknown, the first found block sets
// it.
int walk_backward(const KvCache& cache, const BlockHistory& history, int group, int end, PrefixId& tip,
                  PrefixMatch& match) {
  auto& table = match.tables[static_cast<std::size_t>(group)];
  const int first = cache.first_needed(group, end * cache.pool.block_size());
  PrefixId expected = tip;
  for (int i = end - 1; i >= first; --i) {
    const BlockId block = cache.pool.find(content_of(cache, history, group, i, kAnyPrefix));
    if (block == kNoBlock) return i;
    if (expected != kAnyPrefix && expected != cache.pool.prefix(block)) return i;
    if (i == 0 && cache.pool.parent(block) != kEmptyPrefix) return 0;
    table[static_cast<std::size_t>(i)] = block;
    if (i == end - 1) tip = cache.pool.prefix(block);
    expected = cache.pool.parent(block);
  }
  return -1;
}

// Returns the largest prefix length in blocks, at most `end`, for which a saved state may exist.
int end_with_state(const SavedStates& states, std::span<const PrefixId> chain, int end) {
  const auto lacks_state = [&](PrefixId prefix) {
    return prefix != kAnyPrefix && states.find(prefix) == kNoState;
  };
  while (end > 0 && lacks_state(chain[static_cast<std::size_t>(end) - 1])) --end;
  return end;
}

// Removes the found blocks to which no later position attends, and counts the other ones.
void settle(const KvCache& cache, PrefixMatch& match) {
  match.unreferenced = match.lent = 0;
  for (int g = 0; g < cache.group_count(); ++g) {
    auto& table = match.tables[static_cast<std::size_t>(g)];
    table.resize(static_cast<std::size_t>(match.blocks));
    const int first = cache.first_needed(g, match.blocks * cache.pool.block_size());
    std::fill_n(table.begin(), std::min(first, match.blocks), kNoBlock);
    for (const BlockId block : table) {
      if (block == kNoBlock) continue;
      const bool free = cache.pool.references(block) == 0;
      match.unreferenced += free;
      match.lent += !free && cache.group(g).window != 0;
    }
  }
}

}  // namespace

void find_prefix(const KvCache& cache, const BlockHistory& history, PrefixMatch& match) {
  const auto tokens = static_cast<int>(history.tokens.size());
  const int limit = std::min(static_cast<int>(history.keys.size()), (tokens - 1) / cache.pool.block_size());
  match.tables.resize(static_cast<std::size_t>(cache.group_count()));
  for (auto& table : match.tables) table.assign(static_cast<std::size_t>(limit), kNoBlock);
  match.chain.assign(static_cast<std::size_t>(limit), kAnyPrefix);

  int end = limit;
  for (int g = 0; g < cache.group_count(); ++g)
    if (cache.group(g).window == 0) end = walk_forward(cache, history, g, end, match);

  // All groups have the same prefix. A block that is missing in the window of one group shortens the prefix
  // to that block. A missing state shortens it, too.
  match.state_slot = kNoState;
  match.stateless_blocks = 0;
  match.tip = kEmptyPrefix;
  for (bool moved = true; moved && end > 0;) {
    moved = false;
    match.tip = match.chain[static_cast<std::size_t>(end - 1)];
    for (int g = 0; g < cache.group_count() && !moved; ++g) {
      if (cache.group(g).window == 0) continue;
      const int hole = walk_backward(cache, history, g, end, match.tip, match);
      if (hole >= 0) end = hole, moved = true;
    }
    if (moved || !cache.saved_states) continue;
    match.stateless_blocks = std::max(match.stateless_blocks, end);
    match.state_slot = cache.saved_states->find(match.tip);
    if (match.state_slot != kNoState) break;
    end = end_with_state(*cache.saved_states, match.chain, end - 1);
    moved = true;
  }
  match.blocks = end;
  if (end == 0) match.tip = kEmptyPrefix;
  settle(cache, match);
}

}  // namespace octavo
