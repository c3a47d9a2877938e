#include "engine/execute/local_adapters.h"

#include <algorithm>
#include <utility>

namespace octavo {

LocalAdapters::LocalAdapters(const Model& model, Backend& backend, int slots, int rank_max, int recorded)
    : backend_(backend), adapters_(static_cast<std::size_t>(slots)), recordings_(slots > 0 ? recorded : 0) {
  if (slots > 0)
    reader_.emplace(model.spec, model.activation, rank_max,
                    backend.device->shares_host_memory() && model.spec.shard.size == 1);
}

Result<> LocalAdapters::put_adapter(int slot, std::span<const AdapterFile::Change> changes) {
  forget_recordings();
  Adapter& adapter = adapters_[static_cast<std::size_t>(slot)];
  adapter.resize(reader_->linears());
  for (const AdapterFile::Change& change : changes) {
    TRY(adapter[change.linear], reader_->prepare(change, backend_));
  }
  return {};
}

void LocalAdapters::drop_adapter(int slot) {
  forget_recordings();
  adapters_[static_cast<std::size_t>(slot)].clear();
}

// Waits for the stream, because a step in flight may still read the adapters.
void LocalAdapters::forget_recordings() {
  backend_.stream->synchronize();
  recordings_.forget();
}

bool LocalAdapters::begin_step(const Batch& batch, bool recorded) {
  sequence_slots_.clear();
  if (std::ranges::all_of(batch.adapters, [](int slot) { return slot < 0; })) return false;
  sequence_slots_ = batch.adapters;
  item_slots_.clear();
  for (std::size_t s = 0; s < batch.adapters.size(); ++s)
    item_slots_.resize(static_cast<std::size_t>(batch.query_starts[s + 1]), batch.adapters[s]);
  sort(tokens_, recorded);
  return true;
}

const LocalAdapters::Sorted& LocalAdapters::sort_rows(std::span<const std::int32_t> tokens,
                                                      const StepPlans& plans) {
  item_slots_.clear();
  if (!sequence_slots_.empty())
    for (const std::int32_t token : tokens) item_slots_.push_back(sequence_slots_[plans.sequence_of(token)]);
  sort(rows_, false);
  return rows_;
}

void LocalAdapters::sort(Sorted& sorted, bool all) const {
  sorted.adapters.clear();
  sorted.starts.assign(1, 0);
  sorted.numbers.clear();
  for (std::size_t slot = 0; slot < adapters_.size(); ++slot) {
    for (std::size_t i = 0; i < item_slots_.size(); ++i)
      if (std::cmp_equal(item_slots_[i], slot)) sorted.numbers.push_back(static_cast<std::int32_t>(i));
    const bool used = std::cmp_greater(sorted.numbers.size(), sorted.starts.back());
    if (!used && (!all || adapters_[slot].empty())) continue;
    sorted.adapters.push_back(&adapters_[slot]);
    sorted.starts.push_back(static_cast<std::int32_t>(sorted.numbers.size()));
  }
}

}  // namespace octavo
