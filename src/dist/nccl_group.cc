#include "dist/nccl_group.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
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

// A call of ncclCommInitRank.
struct Connecting {
  NcclLibrary::Comm comm = nullptr;
  std::atomic<NcclLibrary::Code> code = NcclLibrary::kInProgress;
};

// Calls ncclCommInitRank on a separate thread. The call returns when all ranks have called it, so it never
// returns if a rank does not come, and nothing can end it.
std::shared_ptr<const Connecting> connect(const std::shared_ptr<const NcclLibrary>& nccl, NcclDevice& device,
                                          const NcclLibrary::UniqueId& id, int size, int rank) {
  auto connecting = std::make_shared<Connecting>();
  std::promise<void> entered;
  std::future<void> has_entered = entered.get_future();
  std::thread([=, &device, entered = std::move(entered)]() mutable {
    device.stream();
    entered.set_value();  // the thread does not use `device` from here on
    connecting->code = nccl->comm_init_rank(&connecting->comm, size, id, rank);
  }).detach();
  has_entered.wait();
  return connecting;
}

// Waits until NCCL has connected all ranks. The ranks exchange the states of their calls, so a rank that dies
// or hangs ends the wait of the others.
Result<> wait_until_connected(const NcclLibrary& nccl, const Connecting& own, ProcessGroup& host,
                              const NcclStart& start) {
  constexpr int kLookMs = 20;
  struct State {
    int name = 0;
    NcclLibrary::Code code = NcclLibrary::kInProgress;
  };
  std::vector<State> all(static_cast<std::size_t>(host.size()));
  std::vector<int> missing;
  for (int waited_ms = 0;; waited_ms += kLookMs) {
    const State mine{start.name, own.code};
    host.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    TRY_VOID(host.status());
    missing.clear();
    for (const State& each : all)
      if (each.code == NcclLibrary::kInProgress) missing.push_back(each.name);
    if (missing.empty() || waited_ms >= start.timeout_ms) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  for (const State& each : all)
    if (const Result<> fine = nccl.check(each.code, "ncclCommInitRank"); !fine)
      return failure(missing.empty() ? ErrorCode::unsupported : ErrorCode::unavailable, "{} (rank {})",
                     fine.error().message, each.name);
  if (!missing.empty())
    return failure(ErrorCode::unavailable,
                   "NCCL: ncclCommInitRank has not returned on rank {} for {} ms: set NCCL_DEBUG=INFO to see "
                   "why, or raise --distributed-timeout-seconds",
                   fmt::join(missing, ", "), start.timeout_ms);
  return {};
}

}  // namespace

Result<std::unique_ptr<NcclGroup>> NcclGroup::create(std::shared_ptr<const NcclLibrary> nccl,
                                                     std::unique_ptr<NcclDevice> device, ProcessGroup& host,
                                                     const NcclStart& start) {
  std::unique_ptr<NcclGroup> group(new NcclGroup(std::move(nccl), std::move(device), host));
  struct Id {
    NcclLibrary::UniqueId id = {};
    NcclLibrary::Code code = NcclLibrary::kSuccess;
  } made;
  if (host.rank() == 0) made.code = group->nccl_->get_unique_id(&made.id);
  host.broadcast(std::as_writable_bytes(std::span(&made, 1)));
  TRY_VOID(host.status());
  if (const Result<> fine = group->nccl_->check(made.code, "ncclGetUniqueId"); !fine)
    return octavo::failure(ErrorCode::unsupported, "{}", fine.error().message);
  const auto connecting = connect(group->nccl_, *group->device_, made.id, host.size(), host.rank());
  TRY_VOID(wait_until_connected(*group->nccl_, *connecting, host, start));
  group->comm_ = connecting->comm;
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
