#include "model/staged_group.h"

namespace octavo {
namespace {

View bytes_view(std::span<const std::byte> values) {
  return View::of(const_cast<std::byte*>(values.data()), DType::u8, {std::ssize(values)});
}

}  // namespace

// Enlarges memory_ to at least `bytes` bytes. Returns false if the group has failed, or if there is not
// enough memory.
bool StagedGroup::reserve(std::size_t bytes) {
  if (failure()) return false;
  if (bytes <= memory_.bytes()) return true;
  backend_.stream->synchronize();  // the device may still read the last result
  auto memory = backend_.device->allocate_staging(bytes);
  if (memory)
    memory_ = *std::move(memory);
  else
    failure_ = memory.error();
  return memory.has_value();
}

void StagedGroup::enqueue_download(std::span<const std::byte> values, std::size_t offset) {
  backend_.device->download(*backend_.stream, staged(memory_.bytes()).data() + offset, bytes_view(values));
}

// download() waits for the stream, so the device has also read the last result, and the host may overwrite
// memory_.
void StagedGroup::download(std::span<const std::byte> values, std::size_t offset) {
  enqueue_download(values, offset);
  backend_.stream->synchronize();
}

void StagedGroup::upload(std::span<std::byte> values, std::size_t offset) {
  if (failure()) return;
  backend_.device->upload(*backend_.stream, bytes_view(values), staged(memory_.bytes()).data() + offset);
}

void StagedGroup::all_reduce(std::span<float> values) {
  const std::span<std::byte> bytes = std::as_writable_bytes(values);
  if (size() == 1 || values.empty() || !reserve(bytes.size())) return;
  download(bytes, 0);
  host_.all_reduce({reinterpret_cast<float*>(memory_.data()), values.size()});
  upload(bytes, 0);
}

void StagedGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t whole = mine.size() * static_cast<std::size_t>(size());
  CHECK(all.empty() || all.size() == whole);
  if (mine.empty() || !reserve(mine.size() + all.size())) return;
  download(mine, all.size());
  host_.all_gather(staged(memory_.bytes()).subspan(all.size(), mine.size()), staged(all.size()));
  upload(all, 0);
}

void StagedGroup::gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  if (largest_part(all, starts, size()) == 0 || !reserve(all.size())) return;
  const auto own = static_cast<std::size_t>(rank());
  download(all.subspan(starts[own], starts[own + 1] - starts[own]), starts[own]);
  host_.gather(staged(all.size()), starts, to);
  if (to == kEveryRank || to == rank())
    upload(all.subspan(starts.front(), starts.back() - starts.front()), starts.front());
}

void StagedGroup::gather_rows(std::span<std::byte> rows, std::size_t row_bytes,
                              std::span<const std::size_t> starts, int to) {
  CHECK(starts.front() == 0 && starts.back() == row_bytes && rows.size() % row_bytes == 0);
  if (rows.empty() || !reserve(rows.size())) return;
  const auto own = static_cast<std::size_t>(rank());
  for (std::size_t row = 0; row < rows.size(); row += row_bytes)
    enqueue_download(rows.subspan(row + starts[own], starts[own + 1] - starts[own]), row + starts[own]);
  backend_.stream->synchronize();
  for (std::size_t row = 0; row < rows.size(); row += row_bytes)
    host_.gather(staged(rows.size()).subspan(row, row_bytes), starts, to);
  if (to == kEveryRank || to == rank()) upload(rows, 0);
}

void StagedGroup::broadcast(std::span<std::byte> message) {
  if (message.empty() || !reserve(message.size())) return;
  download(message.first(rank() == 0 ? message.size() : 0), 0);
  host_.broadcast(staged(message.size()));
  if (rank() != 0) upload(message, 0);
}

RankGroups staged_groups(Backend& backend, const RankGroups& host) {
  const auto staged = [&](const std::unique_ptr<ProcessGroup>& group) -> std::unique_ptr<ProcessGroup> {
    return group ? std::make_unique<StagedGroup>(backend, *group) : nullptr;
  };
  return {.all = staged(host.all),
          .tensor = staged(host.tensor),
          .from_stage_before = staged(host.from_stage_before),
          .to_stage_behind = staged(host.to_stage_behind),
          .experts = staged(host.experts)};
}

}  // namespace octavo
