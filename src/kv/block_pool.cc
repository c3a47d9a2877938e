#include "kv/block_pool.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace octavo {

BlockPool::BlockPool(int num_blocks, int block_size, int group_count)
    : total_(num_blocks),
      block_size_(block_size),
      blocks_(at(num_blocks) + 1),
      tokens_(at(num_blocks) * at(block_size)),
      buckets_(std::bit_ceil(2 * at(num_blocks)), kNoBlock),
      extra_references_(at(group_count), 0) {
  CHECK(num_blocks > 0 && block_size > 0 && group_count > 0, "{} blocks of {} tokens, {} groups", num_blocks,
        block_size, group_count);
  const BlockId seam = total_;
  blocks_[at(seam)].older = blocks_[at(seam)].newer = seam;
  for (BlockId b = 0; b < total_; ++b) link_after(blocks_[at(seam)].older, b);
  free_ = total_;
}

std::size_t BlockPool::bucket(int group, Hash128 key) const {
  return (key.low + at(group) * 0x9E3779B97F4A7C15u) & (buckets_.size() - 1);
}

std::span<std::int32_t> BlockPool::tokens(BlockId block) {
  return std::span(tokens_).subspan(at(block) * at(block_size_), at(block_size_));
}

// The free blocks form a ring, sorted by the time of their release. Inserts `block` into the ring as the
// next newer block after `before`.
void BlockPool::link_after(BlockId before, BlockId block) {
  const BlockId next = blocks_[at(before)].newer;
  blocks_[at(block)].older = before;
  blocks_[at(block)].newer = next;
  blocks_[at(before)].newer = block;
  blocks_[at(next)].older = block;
}

void BlockPool::unlink(BlockId block) {
  const Block& b = blocks_[at(block)];
  blocks_[at(b.older)].newer = b.newer;
  blocks_[at(b.newer)].older = b.older;
}

void BlockPool::forget(BlockId block) {
  Block& b = blocks_[at(block)];
  if (b.prefix == kEmptyPrefix) return;
  if (log_ && !has_twin(block)) log_->write({KvEvent::Kind::removed, b.group, b.key});
  BlockId* link = &buckets_[bucket(b.group, b.key)];
  while (*link != block) link = &blocks_[at(*link)].next_in_bucket;
  *link = b.next_in_bucket;
  b.next_in_bucket = kNoBlock;
  b.prefix = kEmptyPrefix;
  if (b.references == 0) --cached_free_;
}

BlockId BlockPool::allocate(int group) {
  CHECK(free_ > 0);
  const BlockId block = blocks_[at(total_)].newer;
  unlink(block);
  if (blocks_[at(block)].prefix != kEmptyPrefix)
    for (BlockObserver* observer : observers_) observer->evicted(block);
  forget(block);
  --free_;
  blocks_[at(block)].references = 1;
  blocks_[at(block)].group = group;
  for (BlockObserver* observer : observers_) observer->allocated(block);
  return block;
}

void BlockPool::acquire(BlockId block) {
  Block& b = blocks_[at(block)];
  for (BlockObserver* observer : observers_) observer->acquired(block);
  if (b.references++ > 0) {
    ++extra_references_[at(b.group)];
    return;
  }
  unlink(block);
  --free_;
  if (b.prefix != kEmptyPrefix) --cached_free_;
}

void BlockPool::release(BlockId block) {
  Block& b = blocks_[at(block)];
  CHECK(b.references > 0, "block {} released, but it has no users", block);
  if (--b.references > 0) {
    --extra_references_[at(b.group)];
    return;
  }
  ++free_;
  for (BlockObserver* observer : observers_) observer->released(block);
  const BlockId seam = total_;
  if (b.prefix == kEmptyPrefix) {
    link_after(seam, block);
  } else {
    link_after(blocks_[at(seam)].older, block);
    ++cached_free_;
  }
}

bool BlockPool::holds(BlockId block, const BlockContent& content) const {
  const Block& b = blocks_[at(block)];
  return b.key == content.key && b.group == content.group && b.extra == content.extra &&
         (content.parent == kAnyPrefix || content.parent == b.parent) &&
         std::equal(content.tokens.begin(), content.tokens.end(), &tokens_[at(block) * at(block_size_)]);
}

BlockId BlockPool::find(const BlockContent& content) const {
  BlockId block = buckets_[bucket(content.group, content.key)];
  while (block != kNoBlock && !holds(block, content)) block = blocks_[at(block)].next_in_bucket;
  return block;
}

void BlockPool::prefetch(int group, Hash128 key) const { __builtin_prefetch(&buckets_[bucket(group, key)]); }

void BlockPool::remember(BlockId block, const BlockContent& content, PrefixId prefix) {
  Block& b = blocks_[at(block)];
  CHECK(b.references > 0 && b.prefix == kEmptyPrefix && prefix != kEmptyPrefix && b.group == content.group,
        "block {}: {} users, prefix {}, group {} of {}", block, b.references, b.prefix, b.group,
        content.group);
  CHECK(content.tokens.size() == at(block_size_), "{} tokens for a block of {}", content.tokens.size(),
        block_size_);
  b.key = content.key;
  b.extra = content.extra;
  b.parent = content.parent;
  b.prefix = prefix;
  b.parent_key = content.parent_key;
  std::ranges::copy(content.tokens, tokens(block).begin());
  if (log_ && !has_twin(block)) log_stored(block);
  BlockId& first = buckets_[bucket(b.group, b.key)];
  b.next_in_bucket = first;
  first = block;
  for (BlockObserver* observer : observers_) observer->remembered(block, content, prefix);
}

void BlockPool::restore(BlockId block, const BlockContent& content, PrefixId prefix) {
  Block& b = blocks_[at(block)];
  CHECK(b.references == 0 && b.prefix == kEmptyPrefix, "block {}: {} users, prefix {}", block, b.references,
        b.prefix);
  acquire(block);
  b.group = content.group;
  remember(block, content, prefix);
  release(block);
  last_prefix_ = std::max(last_prefix_, prefix);
}

void BlockPool::reset() {
  // one `cleared` event replaces the events of single blocks
  KvEventLog* const log = std::exchange(log_, nullptr);
  for (BlockId block = 0; block < total_; ++block) forget(block);
  log_ = log;
  if (log_) log_->write({.kind = KvEvent::Kind::cleared});
  for (BlockObserver* observer : observers_) observer->cleared();
}

bool BlockPool::has_twin(BlockId block) const {
  const Block& b = blocks_[at(block)];
  for (BlockId other = buckets_[bucket(b.group, b.key)]; other != kNoBlock;
       other = blocks_[at(other)].next_in_bucket)
    if (other != block && blocks_[at(other)].key == b.key && blocks_[at(other)].group == b.group) return true;
  return false;
}

void BlockPool::log_stored(BlockId block) {
  const Block& b = blocks_[at(block)];
  log_->write({KvEvent::Kind::stored, b.group, b.key, b.parent_key, b.extra}, tokens(block));
}

// Logs each content once. Prefix ids ascend from parents to children, so parents are logged first.
void BlockPool::log_all() {
  if (!log_ || !log_->losing() || !log_->has_room(at(total_) + 1)) return;
  std::vector<std::tuple<PrefixId, int, BlockId>> contents;
  for (BlockId block = 0; block < total_; ++block)
    if (const Block& b = blocks_[at(block)]; b.prefix != kEmptyPrefix)
      contents.emplace_back(b.prefix, b.group, block);
  std::ranges::sort(contents);
  log_->resume();
  log_->write({.kind = KvEvent::Kind::cleared});
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto& [prefix, group, block] = contents[i];
    const bool again =
        i > 0 && std::get<0>(contents[i - 1]) == prefix && std::get<1>(contents[i - 1]) == group;
    if (!again) log_stored(block);
  }
}

void BlockPool::check() const {
  int free = 0, cached_free = 0;
  for (BlockId b = blocks_[at(total_)].newer; b != total_; b = blocks_[at(b)].newer) {
    CHECK(blocks_[at(b)].references == 0, "block {} is free and has {} users", b, blocks_[at(b)].references);
    CHECK(blocks_[at(blocks_[at(b)].newer)].older == b);
    CHECK(++free <= total_);
    cached_free += blocks_[at(b)].prefix != kEmptyPrefix;
  }
  CHECK(free == free_ && cached_free == cached_free_, "{} free, {} counted; {} cached, {} counted", free,
        free_, cached_free, cached_free_);
  int unused = 0, remembered = 0, found = 0;
  std::vector<int> extra(extra_references_.size(), 0);
  for (BlockId b = 0; b < total_; ++b) {
    unused += blocks_[at(b)].references == 0;
    remembered += blocks_[at(b)].prefix != kEmptyPrefix;
    extra[at(blocks_[at(b)].group)] += std::max(0, blocks_[at(b)].references - 1);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    for (BlockId b = buckets_[i]; b != kNoBlock; b = blocks_[at(b)].next_in_bucket) {
      CHECK(bucket(blocks_[at(b)].group, blocks_[at(b)].key) == i && blocks_[at(b)].prefix != kEmptyPrefix);
      CHECK(++found <= total_);
    }
  CHECK(unused == free_ && remembered == found && extra == extra_references_,
        "{} unused of {} free; {} remembered, {} found", unused, free_, remembered, found);
}

}  // namespace octavo
