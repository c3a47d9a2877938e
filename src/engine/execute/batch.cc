#include "engine/execute/batch.h"

#include <algorithm>

namespace octavo {
namespace {

void pack_group(const StepPlan& plan, int g, int block_size, Batch::Group& group) {
  std::size_t stride = 0;
  for (const PlannedSequence& s : plan.sequences) stride = std::max(stride, s.blocks->table(g).size());
  group.table_stride = static_cast<std::int64_t>(stride);
  group.tables.assign(stride * plan.sequences.size(), kNoBlock);
  group.slots.clear();
  auto row = group.tables.begin();
  for (const PlannedSequence& s : plan.sequences) {
    const std::span<const BlockId> table = s.blocks->table(g);
    std::ranges::copy(table, row);
    row += static_cast<std::ptrdiff_t>(stride);
    for (int position = s.first; position < s.end(); ++position) {
      const BlockId block = table[static_cast<std::size_t>(position / block_size)];
      group.slots.push_back(std::int64_t{block} * block_size + position % block_size);
    }
  }
}

void copy_draft_states(const StepPlan& plan, Batch& batch) {
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& s = plan.sequences[i];
    if (s.draft_states.empty()) continue;
    batch.state_copies.resize(static_cast<std::size_t>(batch.tokens()), -1);
    std::ranges::copy(s.draft_states, batch.state_copies.begin() + batch.query_starts[i] + s.count - 1);
  }
}

}  // namespace

void pack(const StepPlan& plan, int group_count, int block_size, Batch& batch) {
  batch.ids.clear();
  batch.positions.clear();
  batch.types.clear();
  batch.lengths.clear();
  batch.sequences.clear();
  batch.state_slots.clear();
  batch.state_copies.clear();
  batch.restored_states.clear();
  batch.saved_states.clear();
  batch.pending.clear();
  batch.query_starts.assign(1, 0);
  for (const PlannedSequence& s : plan.sequences) {
    batch.ids.insert(batch.ids.end(), s.tokens.begin(), s.tokens.end());
    if (s.last_pending) {
      batch.pending.push_back({batch.tokens(), static_cast<std::int32_t>(batch.lengths.size())});
      batch.ids.push_back(0);
    }
    batch.ids.insert(batch.ids.end(), s.drafts.begin(), s.drafts.end());
    for (int position = s.first; position < s.end(); ++position) {
      batch.positions.push_back(position);
      batch.types.push_back(position >= s.second_text);
    }
    batch.lengths.push_back(s.end());
    batch.sequences.push_back(s.sequence);
    batch.state_slots.push_back(s.state_slot);
    if (s.state_from != kNoState) batch.restored_states.push_back({s.state_from, s.state_slot});
    if (s.state_to != kNoState)
      batch.saved_states.push_back({s.draft_states.empty() ? s.state_slot : s.draft_states[0], s.state_to});
    batch.query_starts.push_back(batch.tokens());
  }
  copy_draft_states(plan, batch);
  batch.groups.resize(static_cast<std::size_t>(group_count));
  for (int g = 0; g < group_count; ++g)
    pack_group(plan, g, block_size, batch.groups[static_cast<std::size_t>(g)]);
}

Batch new_texts(std::span<const int> tokens, int group_count, int block_size, int vocab) {
  const auto blocks_of = [&](int count) { return (count + block_size - 1) / block_size; };
  Batch batch;
  batch.query_starts = {0};
  Batch::Group group{.tables = {}, .table_stride = blocks_of(std::ranges::max(tokens)), .slots = {}};
  std::int32_t block = 0;
  for (std::size_t s = 0; s < tokens.size(); ++s) {
    for (int i = 0; i < tokens[s]; ++i) {
      batch.ids.push_back(batch.tokens() * 37 % vocab);
      batch.positions.push_back(i);
      group.slots.push_back(std::int64_t{block} * block_size + i);
    }
    batch.query_starts.push_back(batch.tokens());
    batch.lengths.push_back(tokens[s]);
    batch.sequences.push_back(static_cast<SequenceId>(s));
    batch.state_slots.push_back(static_cast<std::int32_t>(s));
    for (int b = 0; b < group.table_stride; ++b)
      group.tables.push_back(b < blocks_of(tokens[s]) ? block++ : kNoBlock);
  }
  batch.types.resize(batch.positions.size());
  batch.groups.assign(static_cast<std::size_t>(group_count), group);
  return batch;
}

}  // namespace octavo
