#include "kv/sequence_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {
namespace {

// Returns the number of blocks that group g must still allocate until the sequence has `end` tokens.
// `length` is the number of entries in the table, and `held` is the number of entries that have a block.
int group_growth(const KvCache& cache, int g, int length, int held, int end, int ahead) {
  return std::max(0, std::min(cache.blocks_for(end) - length, cache.peak_blocks(g, end, ahead) - held));
}

}  // namespace

SequenceBlocks::SequenceBlocks(KvCache& cache, int max_tokens)
    : cache_(&cache), groups_(cache.groups.size()) {
  for (Group& group : groups_) group.table.reserve(static_cast<std::size_t>(cache.blocks_for(max_tokens)));
}

int SequenceBlocks::held() const {
  int sum = 0;
  for (const Group& group : groups_) sum += static_cast<int>(group.table.size()) - group.passed;
  return sum;
}

std::size_t SequenceBlocks::bytes() const {
  std::size_t sum = 0;
  for (const Group& group : groups_) sum += sizeof(Group) + group.table.capacity() * sizeof(BlockId);
  return sum;
}

void SequenceBlocks::adopt(const PrefixMatch& match) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    CHECK(group.table.empty());
    group.table.assign(match.tables[g].begin(), match.tables[g].end());
    const int first = cache_->first_needed(static_cast<int>(g), match.blocks * cache_->pool.block_size());
    group.passed = std::min(match.blocks, first);
    for (const BlockId block : std::span(group.table).subspan(static_cast<std::size_t>(group.passed)))
      cache_->pool.acquire(block);
  }
  published_ = match.blocks;
  tip_ = match.tip;
}

int SequenceBlocks::missing(int end) const {
  const int wanted = cache_->blocks_for(end);
  int sum = 0;
  for (const Group& group : groups_) sum += std::max(0, wanted - static_cast<int>(group.table.size()));
  return sum;
}

int SequenceBlocks::growth(int end, int ahead) const {
  int sum = 0;
  for (int g = 0; g < cache_->group_count(); ++g) {
    const Group& group = groups_[static_cast<std::size_t>(g)];
    const int length = static_cast<int>(group.table.size());
    sum += group_growth(*cache_, g, length, length - group.passed, end, ahead);
  }
  return sum;
}

int SequenceBlocks::growth_after(const KvCache& cache, const PrefixMatch& match, int end, int ahead) {
  int sum = 0;
  for (int g = 0; g < cache.group_count(); ++g) {
    const int passed = std::min(match.blocks, cache.first_needed(g, match.blocks * cache.pool.block_size()));
    sum += group_growth(cache, g, match.blocks, match.blocks - passed, end, ahead);
  }
  return sum;
}

bool SequenceBlocks::reserve(int end) {
  if (missing(end) > cache_->pool.free()) return false;
  const auto wanted = static_cast<std::size_t>(cache_->blocks_for(end));
  for (int g = 0; g < cache_->group_count(); ++g) {
    auto& table = groups_[static_cast<std::size_t>(g)].table;
    while (table.size() < wanted) table.push_back(cache_->pool.allocate(g));
  }
  return true;
}

int SequenceBlocks::missing_of_prefix(const KvCache& cache, const PrefixMatch& match, int end) {
  int sum = 0;
  for (int g = 0; g < cache.group_count(); ++g)
    sum += std::max(0, cache.blocks_for(end) - std::max(match.blocks, cache.first_needed(g, end)));
  return sum;
}

bool SequenceBlocks::reserve_prefix(int end) {
  const int wanted = cache_->blocks_for(end);
  int sum = 0;
  for (int g = 0; g < cache_->group_count(); ++g)
    sum += std::max(0, wanted - std::max(static_cast<int>(groups_[static_cast<std::size_t>(g)].table.size()),
                                         cache_->first_needed(g, end)));
  if (sum > cache_->pool.free()) return false;
  for (int g = 0; g < cache_->group_count(); ++g) {
    Group& group = groups_[static_cast<std::size_t>(g)];
    const int first = std::min(cache_->first_needed(g, end), wanted);
    pass(group, std::min(first, static_cast<int>(group.table.size())));
    for (int i = static_cast<int>(group.table.size()); i < wanted; ++i)
      group.table.push_back(i < first ? kNoBlock : cache_->pool.allocate(g));
    group.passed = std::max(group.passed, first);
  }
  return true;
}

void SequenceBlocks::publish(int computed, const BlockHistory& history) {
  constexpr std::size_t kAhead = 8;
  const int size = cache_->pool.block_size();
  const auto full = static_cast<std::size_t>(computed / size);
  for (; published_ < computed / size; ++published_) {
    const auto i = static_cast<std::size_t>(published_);
    if (i + kAhead < full) cache_->pool.prefetch(0, history.keys[i + kAhead]);
    BlockContent content{
        0,
        history.keys[i],
        history.extra_of(i),
        tip_,
        history.tokens.subspan(i * static_cast<std::size_t>(size), static_cast<std::size_t>(size)),
        i > 0 ? history.keys[i - 1] : Hash128{}};
    // If another sequence has computed the same content, uses the prefix id of that content, so that equal
    // contents have one id in all groups.
    BlockId twin = kNoBlock;
    for (content.group = 0; content.group < cache_->group_count() && twin == kNoBlock; ++content.group)
      twin = cache_->pool.find(content);
    const PrefixId prefix = twin == kNoBlock ? cache_->pool.new_prefix() : cache_->pool.prefix(twin);
    for (content.group = 0; content.group < cache_->group_count(); ++content.group)
      if (const BlockId block = table(content.group)[i]; block != kNoBlock)
        cache_->pool.remember(block, content, prefix);
    tip_ = prefix;
  }
}

void SequenceBlocks::leave_window(int computed) {
  for (int g = 0; g < cache_->group_count(); ++g)
    pass(groups_[static_cast<std::size_t>(g)], cache_->first_needed(g, computed));
}

void SequenceBlocks::pass(Group& group, int first) {
  for (; group.passed < first; ++group.passed) {
    BlockId& block = group.table[static_cast<std::size_t>(group.passed)];
    cache_->pool.release(block);
    block = kNoBlock;
  }
}

void SequenceBlocks::shorten(int blocks, std::vector<BlockId>& out) {
  for (int i = published_; i-- > blocks;)
    for (Group& group : groups_) {
      CHECK(group.passed == 0 && static_cast<int>(group.table.size()) == i + 1, "{} of {} blocks", i,
            group.table.size());
      out.push_back(group.table.back());
      group.table.pop_back();
    }
  published_ = std::min(published_, blocks);
  tip_ = kEmptyPrefix;
}

void SequenceBlocks::give_up(std::vector<BlockId>& out) {
  std::size_t longest = 0;
  for (const Group& group : groups_) longest = std::max(longest, group.table.size());
  for (std::size_t i = longest; i-- > 0;)
    for (const Group& group : groups_)
      if (i < group.table.size() && group.table[i] != kNoBlock) out.push_back(group.table[i]);
  for (Group& group : groups_) {
    group.table.clear();
    group.passed = 0;
  }
  published_ = 0;
  tip_ = kEmptyPrefix;
}

}  // namespace octavo
