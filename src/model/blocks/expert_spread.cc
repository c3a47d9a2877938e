#include "model/blocks/expert_spread.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/weight_memory.h"

namespace octavo {
namespace {

// Bytes that a rank sends at a time. They fit into one slot of the shared memory between ranks.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

std::vector<std::vector<std::int32_t>> slots_by_expert(const ExpertPlacement& placement,
                                                       std::size_t experts) {
  std::vector<std::vector<std::int32_t>> slots(experts);
  for (std::size_t slot = 0; slot < placement.size(); ++slot)
    slots[static_cast<std::size_t>(placement[slot])].push_back(static_cast<std::int32_t>(slot));
  return slots;
}

int rank_of(std::int32_t slot, std::int64_t slots, int ranks) {
  int rank = 0;
  while (slot >= first_slot(slots, ranks, rank + 1)) ++rank;
  return rank;
}

// Returns for each rank the experts that it sends, in order. A rank receives only experts that it does not
// have.
std::vector<std::vector<std::int32_t>> experts_to_send(const ExpertPlacement& now,
                                                       const ExpertPlacement& next, std::size_t experts,
                                                       int ranks) {
  const auto before = slots_by_expert(now, experts), after = slots_by_expert(next, experts);
  const std::int64_t slots = std::ssize(now);
  std::vector<std::vector<std::int32_t>> sends(static_cast<std::size_t>(ranks));
  for (std::size_t e = 0; e < experts; ++e) {
    const auto has = [&](int rank) {
      return std::ranges::any_of(before[e],
                                 [&](std::int32_t slot) { return rank_of(slot, slots, ranks) == rank; });
    };
    if (std::ranges::all_of(after[e], [&](std::int32_t slot) { return has(rank_of(slot, slots, ranks)); }))
      continue;
    int sender = rank_of(before[e][0], slots, ranks);
    for (const std::int32_t slot : before[e])
      if (const int other = rank_of(slot, slots, ranks);
          sends[static_cast<std::size_t>(other)].size() < sends[static_cast<std::size_t>(sender)].size())
        sender = other;
    sends[static_cast<std::size_t>(sender)].push_back(static_cast<std::int32_t>(e));
  }
  return sends;
}

// Calls take(part) for each contiguous part of the bytes [begin, begin + size) of the concatenated pieces.
template <class Take>
void for_range(std::span<const std::span<std::byte>> pieces, std::size_t begin, std::size_t size,
               const Take& take) {
  for (const std::span<std::byte> piece : pieces) {
    if (begin >= piece.size()) {
      begin -= piece.size();
      continue;
    }
    const std::span<std::byte> part = piece.subspan(begin, std::min(size, piece.size() - begin));
    take(part);
    begin = 0;
    size -= part.size();
    if (size == 0) return;
  }
}

}  // namespace

ExpertSpread::ExpertSpread(int experts, const Shard& shard)
    : rank_(shard.expert_rank()),
      ranks_(shard.expert_ranks()),
      placement_(first_placement(experts, shard.redundant_experts)),
      slots_of_(slots_by_expert(placement_, static_cast<std::size_t>(experts))),
      loads_(static_cast<std::size_t>(experts)),
      slot_rows_(placement_.size() + 1),
      rank_rows_(static_cast<std::size_t>(ranks_) + 1) {}

std::span<const std::int32_t> ExpertSpread::own(const ExpertPlacement& placement) const {
  const std::int64_t first = first_slot(std::ssize(placement), ranks_, rank_);
  return std::span(placement).subspan(
      static_cast<std::size_t>(first),
      static_cast<std::size_t>(first_slot(std::ssize(placement), ranks_, rank_ + 1) - first));
}

// If an expert has several slots, its tokens are divided evenly among them, in order.
void ExpertSpread::arrange(const RouteArgs& routed, const Arranged& out) {
  const auto* starts = routed.starts.as<std::int32_t>();
  const auto* tokens = routed.tokens.as<std::int32_t>();
  // First row of the expert's i-th replica.
  const auto share = [&](std::size_t expert, std::size_t i) {
    const std::int64_t count = starts[expert + 1] - starts[expert];
    return starts[expert] + count * static_cast<std::int64_t>(i) / std::ssize(slots_of_[expert]);
  };
  for (std::size_t e = 0; e < slots_of_.size(); ++e) {
    loads_[e] += starts[e + 1] - starts[e];
    for (std::size_t i = 0; i < slots_of_[e].size(); ++i)
      slot_rows_[static_cast<std::size_t>(slots_of_[e][i]) + 1] = share(e, i + 1) - share(e, i);
  }
  for (std::size_t slot = 0; slot < placement_.size(); ++slot) slot_rows_[slot + 1] += slot_rows_[slot];
  auto* order = out.order.as<std::int32_t>();
  auto* of_row = out.tokens.as<std::int32_t>();
  for (std::size_t e = 0; e < slots_of_.size(); ++e)
    for (std::size_t i = 0; i < slots_of_[e].size(); ++i) {
      auto row = static_cast<std::int32_t>(slot_rows_[static_cast<std::size_t>(slots_of_[e][i])]);
      for (std::int64_t p = share(e, i); p < share(e, i + 1); ++p, ++row) {
        order[p] = row;
        of_row[row] = tokens[p];
      }
    }
  auto* pair_rows = out.pair_rows.as<std::int32_t>();
  for (std::int64_t i = 0; i < out.pair_rows.elements(); ++i) pair_rows[i] = order[pair_rows[i]];

  for (int rank = 0; rank <= ranks_; ++rank)
    rank_rows_[static_cast<std::size_t>(rank)] =
        slot_rows_[static_cast<std::size_t>(first_slot(std::ssize(placement_), ranks_, rank))];
  const std::int64_t first = first_slot(std::ssize(placement_), ranks_, rank_);
  for (std::int64_t i = 0; i < out.starts.size(0); ++i)
    out.starts.as<std::int32_t>()[i] =
        static_cast<std::int32_t>(slot_rows_[static_cast<std::size_t>(first + i)] - first_row(rank_));
}

void ExpertSpread::arrange(Backend& backend, const RouteArgs& routed, const Arranged& out) {
  if (backend.device->shares_host_memory()) return arrange(routed, out);
  Device& device = *backend.device;
  Stream& stream = *backend.stream;
  const std::array views{routed.starts, routed.tokens, out.pair_rows, out.tokens, out.order, out.starts};
  std::size_t count = 0;
  for (const View& view : views) count += static_cast<std::size_t>(view.elements());
  if (on_host_.size() < count) {
    stream.synchronize();  // an upload of the last step may still read the memory
    on_host_.resize(count);
  }
  std::array<View, views.size()> copies = views;
  std::int32_t* next = on_host_.data();
  for (View& copy : copies) {
    copy.data = next;
    next += copy.elements();
  }
  auto& [starts, tokens, slots, row_tokens, order, own_starts] = copies;
  device.download(stream, starts.data, routed.starts);
  device.download(stream, tokens.data, routed.tokens);
  device.download(stream, slots.data, out.pair_rows);
  stream.synchronize();
  RouteArgs on_host = routed;
  on_host.starts = starts;
  on_host.tokens = tokens;
  arrange(on_host, {slots, row_tokens, order, own_starts});
  device.upload(stream, out.pair_rows, slots.data);
  device.upload(stream, out.tokens, row_tokens.data);
  device.upload(stream, out.starts, own_starts.data);
}

void ExpertSpread::gather(ProcessGroup& group, const View& rows) {
  const auto row_bytes = static_cast<std::size_t>(rows.size(1)) * size_of(rows.dtype);
  rank_bytes_.clear();
  for (const std::int64_t row : rank_rows_) rank_bytes_.push_back(static_cast<std::size_t>(row) * row_bytes);
  group.gather({static_cast<std::byte*>(rows.data), static_cast<std::size_t>(rows.bytes())}, rank_bytes_, 0);
}

std::vector<std::span<std::byte>> ExpertSpread::pieces(std::size_t own_slot) const {
  std::vector<std::span<std::byte>> all;
  for (const Weight* matrix : matrices_[own_slot])
    for (const std::span<std::byte> piece : memory_of(*matrix).pieces) all.push_back(piece);
  return all;
}

std::uint64_t ExpertSpread::format() const {
  const auto format_of = [](const std::vector<const Weight*>& matrices) {
    std::uint64_t format = 1;
    for (const Weight* matrix : matrices) format = format * 31 + memory_of(*matrix).format();
    return format;
  };
  const std::uint64_t first = format_of(matrices_[0]);
  return std::ranges::all_of(matrices_, [&](const auto& slot) { return format_of(slot) == first; }) ? first
                                                                                                    : 0;
}

std::int64_t ExpertSpread::slot_bytes() const {
  std::size_t bytes = 0;
  for (const std::span<std::byte> piece : pieces(0)) bytes += piece.size();
  return static_cast<std::int64_t>(bytes);
}

// All weights that this rank receives are first copied to `staging`, because a slot that changes may contain
// an expert that other ranks still need.
void ExpertSpread::move(const ExpertPlacement& next, ProcessGroup& group, std::span<std::byte> staging) {
  const auto each = static_cast<std::size_t>(slot_bytes());
  const std::span<const std::int32_t> have = own(), want = own(next);
  const auto staged = [&](std::size_t own_slot) { return staging.subspan(own_slot * each, each); };
  const auto own_slot_of = [&](std::int32_t expert) {
    return static_cast<std::size_t>(std::ranges::find(have, expert) - have.begin());
  };
  for (std::size_t slot = 0; slot < want.size(); ++slot) {
    if (want[slot] == have[slot] || own_slot_of(want[slot]) == have.size()) continue;
    std::size_t done = 0;
    for (const std::span<std::byte> piece : pieces(own_slot_of(want[slot]))) {
      std::memcpy(staged(slot).data() + done, piece.data(), piece.size());
      done += piece.size();
    }
  }

  const auto sends = experts_to_send(placement_, next, loads_.size(), ranks_);
  std::vector<std::span<std::byte>> own_pieces;
  for (const std::int32_t expert : sends[static_cast<std::size_t>(rank_)])
    for (const std::span<std::byte> piece : pieces(own_slot_of(expert))) own_pieces.push_back(piece);
  std::size_t most = 0;
  for (const auto& of_rank : sends) most = std::max(most, of_rank.size() * each);
  std::vector<std::byte> chunks(static_cast<std::size_t>(ranks_) * std::min(kChunkBytes, most));
  for (std::size_t begin = 0; begin < most; begin += kChunkBytes) {
    std::vector<std::size_t> starts{0};
    for (const auto& of_rank : sends) {
      const std::size_t all = of_rank.size() * each;
      starts.push_back(starts.back() + (all > begin ? std::min(kChunkBytes, all - begin) : 0));
    }
    std::size_t done = starts[static_cast<std::size_t>(rank_)];
    for_range(own_pieces, begin, starts[static_cast<std::size_t>(rank_) + 1] - done,
              [&](std::span<std::byte> part) {
                std::memcpy(chunks.data() + done, part.data(), part.size());
                done += part.size();
              });
    group.gather(chunks, starts, ProcessGroup::kEveryRank);
    if (group.failure()) return;
    for (std::size_t rank = 0; rank < sends.size(); ++rank)
      for (std::size_t at = starts[rank]; at < starts[rank + 1];) {
        const std::size_t index_in_stream = begin + at - starts[rank];
        const std::size_t inside = index_in_stream % each;
        const std::size_t count = std::min(each - inside, starts[rank + 1] - at);
        const std::int32_t expert = sends[rank][index_in_stream / each];
        for (std::size_t slot = 0; slot < want.size(); ++slot)
          if (want[slot] == expert && own_slot_of(expert) == have.size())
            std::memcpy(staged(slot).data() + inside, chunks.data() + at, count);
        at += count;
      }
  }

  for (std::size_t slot = 0; slot < want.size(); ++slot) {
    if (want[slot] == have[slot]) continue;
    std::size_t done = 0;
    for (const std::span<std::byte> piece : pieces(slot)) {
      std::memcpy(piece.data(), staged(slot).data() + done, piece.size());
      done += piece.size();
    }
  }
  placement_ = next;
  slots_of_ = slots_by_expert(placement_, loads_.size());
}

}  // namespace octavo
