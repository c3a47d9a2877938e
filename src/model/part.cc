#include "model/part.h"

#include <algorithm>

#include "model/blocks/block.h"

namespace octavo {
namespace {

constexpr std::string_view kShardField = "tensor_parallel_size";

std::vector<Block*> blocks_of(const Phase& phase) {
  std::vector<Block*> blocks;
  phase.add_blocks(blocks);
  return blocks;
}

}  // namespace

Result<> not_split(std::string_view what) {
  return field_failure(kShardField, ErrorCode::unsupported, "must be 1 for models with {}", what);
}

Result<> divides(const Shard& shard, std::int64_t number, std::string_view what) {
  if (number % shard.size == 0) return {};
  return invalid(kShardField, "is {}, but must divide {} {}", shard.size, number, what);
}

void Phase::loaded() {
  for (Block* block : blocks_of(*this)) block->loaded();
}

Result<> Phase::splits(const Shard& shard) const {
  for (const Block* block : blocks_of(*this)) TRY_VOID(block->splits(shard));
  return {};
}

bool Phase::spans_layers() const {
  return std::ranges::any_of(blocks_of(*this), [](const Block* block) { return block->spans_layers(); });
}

}  // namespace octavo
