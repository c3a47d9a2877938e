#include "dist/nccl_group.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// Maximum bytes of a sum in one shot. A larger sum takes two shots, which send less: each rank sends its
// values about twice, instead of to every rank.
constexpr std::size_t kOneShotBytes = std::size_t{256} << 10;
// Maximum bytes of a sum in two shots; larger sums are added piece by piece.
constexpr std::size_t kTwoShotBytes = std::size_t{16} << 20;

// Bytes of scratch memory for sums of more than two ranks.
std::size_t scratch_bytes(int ranks) {
  return std::max(static_cast<std::size_t>(ranks) * kOneShotBytes,
                  kTwoShotBytes + static_cast<std::size_t>(ranks) * sizeof(float));
}

// Returns the part of rank `rank`; see ProcessGroup::gather.
std::span<std::byte> part_of(std::span<std::byte> all, std::span<const std::size_t> starts, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  return all.subspan(starts[r], starts[r + 1] - starts[r]);
}

}  // namespace

Result<std::unique_ptr<NcclGroup>> NcclGroup::create(std::shared_ptr<const NcclLibrary> nccl,
                                                     std::unique_ptr<NcclDevice> device, ProcessGroup& host) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(std::move(nccl), std::move(device), host));
  struct Start {
    NcclLibrary::UniqueId id = {};
    NcclLibrary::Code code = NcclLibrary::kSuccess;
  } start;
  if (host.rank() == 0) start.code = group->nccl_->get_unique_id(&start.id);
  host.broadcast(std::as_writable_bytes(std::span(&start, 1)));
  TRY_VOID(host.status());
  TRY_VOID(group->nccl_->check(start.code, "ncclGetUniqueId"));
  const NcclLibrary::Code code =
      group->nccl_->comm_init_rank(&group->comm_, host.size(), start.id, host.rank());
  std::vector<NcclLibrary::Code> codes(static_cast<std::size_t>(host.size()));
  host.all_gather(std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(codes)));
  TRY_VOID(host.status());
  for (const NcclLibrary::Code each : codes) group->call(each, "ncclCommInitRank");
  // Allocates the memory now, because CUDA graphs contain its address.
  if (!group->failure_ && host.size() > 2)
    if (const auto scratch = group->device_->scratch(scratch_bytes(host.size())); !scratch)
      group->note(std::unexpected(scratch.error()));
  if (group->failure_) return std::unexpected(*group->failure_);
  return group;
}

NcclGroup::~NcclGroup() {
  if (!works()) abort();
}

void NcclGroup::abort() {
  if (comm_ != nullptr) nccl_->comm_abort(std::exchange(comm_, nullptr));
}

const std::optional<Error>& NcclGroup::failure() const {
  if (failure_) return failure_;
  if (host_.failure() || comm_ == nullptr) return host_.failure();
  NcclLibrary::Code code = NcclLibrary::kSuccess;
  nccl_->comm_get_async_error(comm_, &code);
  if (const Result<> fine = nccl_->check(code, "a collective operation"); !fine) failure_ = fine.error();
  return failure_;
}

void NcclGroup::note(const Result<>& done) {
  if (!done && !failure_) failure_ = done.error();
}

void NcclGroup::all_reduce(std::span<float> values) {
  if (size() == 1 || values.empty() || !works()) return;
  if (size() == 2) {
    call(nccl_->all_reduce(values.data(), values.data(), values.size(), NcclLibrary::kFloat32,
                           NcclLibrary::kSum, comm_, device_->stream()),
         "ncclAllReduce");
    return;
  }
  if (values.size_bytes() <= kOneShotBytes) return add_in_one_shot(values);
  constexpr std::size_t kMost = kTwoShotBytes / sizeof(float);
  for (; !values.empty() && !failure_; values = values.subspan(std::min(kMost, values.size())))
    add_in_two_shots(values.first(std::min(kMost, values.size())));
}

void NcclGroup::add_in_one_shot(std::span<float> values) {
  const auto scratch = device_->scratch(scratch_bytes(size()));
  if (!scratch) return note(std::unexpected(scratch.error()));
  auto* parts = reinterpret_cast<float*>(*scratch);
  call(
      nccl_->all_gather(values.data(), parts, values.size(), NcclLibrary::kFloat32, comm_, device_->stream()),
      "ncclAllGather");
  if (!failure_) device_->add_parts(values.data(), parts, values.size(), size(), rank());
}

void NcclGroup::add_in_two_shots(std::span<float> values) {
  const auto scratch = device_->scratch(scratch_bytes(size()));
  if (!scratch) return note(std::unexpected(scratch.error()));
  const auto ranks = static_cast<std::size_t>(size()), each = (values.size() + ranks - 1) / ranks;
  std::vector<std::size_t> starts;
  for (std::size_t r = 0; r <= ranks; ++r)
    starts.push_back(std::min(r * each, values.size()) * sizeof(float));
  const std::span<std::byte> all = std::as_writable_bytes(values);
  const std::span<std::byte> own = part_of(all, starts, rank());
  call(nccl_->group_start(), "ncclGroupStart");
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    send(part_of(all, starts, other), other);
    receive({*scratch + static_cast<std::size_t>(other) * own.size(), own.size()}, other);
  }
  call(nccl_->group_end(), "ncclGroupEnd");
  if (failure_) return;
  if (!own.empty())
    device_->add_parts(reinterpret_cast<float*>(own.data()), reinterpret_cast<float*>(*scratch),
                       own.size() / sizeof(float), size(), rank());
  gather(all, starts, kEveryRank);
}

void NcclGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.empty() || all.size() == mine.size() * static_cast<std::size_t>(size()));
  if (mine.empty() || !works()) return;
  std::byte* to = all.data();
  if (all.empty()) {  // NCCL always sends all parts to every rank
    const auto scratch = device_->scratch(mine.size() * static_cast<std::size_t>(size()));
    if (!scratch) return note(std::unexpected(scratch.error()));
    to = *scratch;
  }
  call(nccl_->all_gather(mine.data(), to, mine.size(), NcclLibrary::kBytes, comm_, device_->stream()),
       "ncclAllGather");
}

void NcclGroup::send(std::span<const std::byte> values, int to) {
  if (!values.empty())
    call(nccl_->send(values.data(), values.size(), NcclLibrary::kBytes, to, comm_, device_->stream()),
         "ncclSend");
}

void NcclGroup::receive(std::span<std::byte> values, int from) {
  if (!values.empty())
    call(nccl_->receive(values.data(), values.size(), NcclLibrary::kBytes, from, comm_, device_->stream()),
         "ncclRecv");
}

// Call it between ncclGroupStart and ncclGroupEnd.
void NcclGroup::enqueue_gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    if (to == kEveryRank || to == other) send(part_of(all, starts, rank()), other);
    if (to == kEveryRank || to == rank()) receive(part_of(all, starts, other), other);
  }
}

void NcclGroup::gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  if (largest_part(all, starts, size()) == 0 || !works()) return;
  call(nccl_->group_start(), "ncclGroupStart");
  enqueue_gather(all, starts, to);
  call(nccl_->group_end(), "ncclGroupEnd");
}

// One ncclGroup for all rows, because each group is a launch.
void NcclGroup::gather_rows(std::span<std::byte> rows, std::size_t row_bytes,
                            std::span<const std::size_t> starts, int to) {
  if (rows.empty() || largest_part(rows.first(row_bytes), starts, size()) == 0 || !works()) return;
  call(nccl_->group_start(), "ncclGroupStart");
  for (; !rows.empty(); rows = rows.subspan(row_bytes)) enqueue_gather(rows.first(row_bytes), starts, to);
  call(nccl_->group_end(), "ncclGroupEnd");
}

void NcclGroup::broadcast(std::span<std::byte> message) {
  if (message.empty() || !works()) return;
  call(nccl_->broadcast(message.data(), message.data(), message.size(), NcclLibrary::kBytes, 0, comm_,
                        device_->stream()),
       "ncclBroadcast");
}

}  // namespace octavo
