#include "engine/execute/step_inputs.h"

#include <algorithm>
#include <tuple>

namespace octavo {
namespace {

constexpr std::size_t kAxes = std::tuple_size_v<GridPositions>;

template <class T>
void put(std::span<T> to, std::span<const T> items, T rest) {
  std::ranges::fill(std::ranges::copy(items, to.begin()).out, to.end(), rest);
}

View in_rows(const View& all, std::size_t rows) {
  const auto count = static_cast<std::int64_t>(rows);
  return View::of(all.data, all.dtype, {count, all.size(0) / count});
}

}  // namespace

Result<> StepInputs::begin(std::size_t tokens, std::size_t pending, Backend& backend) {
  memory_.clear();
  ids = memory_.add<std::int32_t>(tokens);
  positions = memory_.add<std::int32_t>(tokens);
  types = memory_.add<std::int32_t>(shape_.types ? tokens : 0);
  axes = memory_.add<std::int32_t>(shape_.axes ? kAxes * tokens : 0);
  for (auto& group : slots) group = memory_.add<std::int64_t>(tokens);
  if (shape_.states) {  // sized for `tokens` sequences, because each sequence has at least one token
    state_slots = memory_.add<std::int32_t>(tokens);
    state_starts = memory_.add<std::int32_t>(tokens + 1);
    state_copies = memory_.add<std::int32_t>(tokens);
  }
  pending_tokens = memory_.add<std::int32_t>(pending);
  pending_rows = memory_.add<std::int32_t>(pending);
  image_rows = memory_.add<std::int32_t>(shape_.images ? tokens : 0);
  if (shape_.adapters > 0) {
    adapter_tokens = memory_.add<std::int32_t>(tokens);
    adapter_starts = memory_.add<std::int32_t>(shape_.adapters + 1);
  }
  return memory_.fit(*backend.device, *backend.stream);
}

void StepInputs::pack(const Batch& batch, std::int64_t padding) {
  put<std::int32_t>(host(ids), batch.ids, 0);
  put<std::int32_t>(host(positions), batch.positions, 0);
  if (shape_.types) put<std::int32_t>(host(types), batch.types, 0);
  const std::size_t each = axes.count / kAxes;
  for (std::size_t axis = 0; each > 0 && axis < kAxes; ++axis) {
    const std::vector<std::int32_t>& own = batch.axes[axis];
    put<std::int32_t>(host(axes).subspan(axis * each, each), own.empty() ? batch.positions : own, 0);
  }
  for (std::size_t g = 0; g < slots.size(); ++g)
    put<std::int64_t>(host(slots[g]), batch.groups[g].slots, padding);
}

void StepInputs::pack_states(const Batch& batch, std::span<const std::int32_t> query_starts) {
  if (!shape_.states) return;
  put<std::int32_t>(host(state_slots), batch.state_slots, 0);
  put<std::int32_t>(host(state_starts), query_starts, query_starts.back());
  put<std::int32_t>(host(state_copies), batch.state_copies, -1);
}

void StepInputs::pack_adapters(std::span<const std::int32_t> tokens, std::span<const std::int32_t> starts) {
  put<std::int32_t>(host(adapter_tokens), tokens, 0);
  std::ranges::copy(starts, host(adapter_starts).begin());
}

View StepInputs::axes_of(const Batch& batch) const {
  if (axes.count == 0) return {};
  return in_rows(device(axes), kAxes).rows(0, batch.images.empty() ? 1 : kAxes);
}

}  // namespace octavo
