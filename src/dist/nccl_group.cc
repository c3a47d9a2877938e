#include "dist/nccl_group.h"

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

// Maximum bytes that a rank contributes to one all-gather.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

}  // namespace

Result<std::unique_ptr<NcclGroup>> NcclGroup::create(std::shared_ptr<const NcclLibrary> nccl,
                                                     NcclDevice& device, ProcessGroup& host) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(std::move(nccl), device, host));
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
  for (const NcclLibrary::Code each : codes) TRY_VOID(group->nccl_->check(each, "ncclCommInitRank"));
  return group;
}

// Aborts if the group has failed, because ncclCommDestroy would wait for a dead rank.
NcclGroup::~NcclGroup() {
  if (comm_ == nullptr) return;
  works() ? nccl_->comm_destroy(comm_) : nccl_->comm_abort(comm_);
}

const std::optional<Error>& NcclGroup::failure() const {
  if (failure_) return failure_;
  if (host_.failure()) return host_.failure();
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
  if (size() > 2) return add_in_order(values);
  call(nccl_->all_reduce(values.data(), values.data(), values.size(), NcclLibrary::kFloat32,
                         NcclLibrary::kSum, comm_, device_.stream()),
       "ncclAllReduce");
}

void NcclGroup::add_in_order(std::span<float> values) {
  const std::size_t most = kPieceBytes / sizeof(float);
  const auto ranks = static_cast<std::size_t>(size());
  const auto scratch = device_.scratch(ranks * std::min(most, values.size()) * sizeof(float));
  if (!scratch) return note(std::unexpected(scratch.error()));
  auto* parts = reinterpret_cast<float*>(*scratch);
  for (; !values.empty() && !failure_; values = values.subspan(std::min(most, values.size()))) {
    const std::span<float> piece = values.first(std::min(most, values.size()));
    call(nccl_->all_gather(piece.data(), parts, piece.size(), NcclLibrary::kFloat32, comm_, device_.stream()),
         "ncclAllGather");
    if (!failure_) device_.add_parts(piece.data(), parts, piece.size(), size());
  }
}

void NcclGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.empty() || all.size() == mine.size() * static_cast<std::size_t>(size()));
  if (mine.empty() || !works()) return;
  std::byte* to = all.data();
  if (all.empty()) {  // NCCL always sends all parts to every rank
    const auto scratch = device_.scratch(mine.size() * static_cast<std::size_t>(size()));
    if (!scratch) return note(std::unexpected(scratch.error()));
    to = *scratch;
  }
  call(nccl_->all_gather(mine.data(), to, mine.size(), NcclLibrary::kBytes, comm_, device_.stream()),
       "ncclAllGather");
}

void NcclGroup::gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  if (largest_part(all, starts, size()) == 0 || !works()) return;
  const auto part = [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return all.subspan(starts[r], starts[r + 1] - starts[r]);
  };
  call(nccl_->group_start(), "ncclGroupStart");
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    if ((to == kEveryRank || to == other) && !part(rank()).empty())
      call(nccl_->send(part(rank()).data(), part(rank()).size(), NcclLibrary::kBytes, other, comm_,
                       device_.stream()),
           "ncclSend");
    if ((to == kEveryRank || to == rank()) && !part(other).empty())
      call(nccl_->receive(part(other).data(), part(other).size(), NcclLibrary::kBytes, other, comm_,
                          device_.stream()),
           "ncclRecv");
  }
  call(nccl_->group_end(), "ncclGroupEnd");
}

void NcclGroup::broadcast(std::span<std::byte> message) {
  if (message.empty() || !works()) return;
  call(nccl_->broadcast(message.data(), message.data(), message.size(), NcclLibrary::kBytes, 0, comm_,
                        device_.stream()),
       "ncclBroadcast");
}

}  // namespace octavo
