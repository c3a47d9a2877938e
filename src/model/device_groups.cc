#include "model/device_groups.h"

#include <utility>

#include "dist/nccl_group.h"
#include "kernels/cuda_collectives.h"
#include "model/staged_group.h"

namespace octavo {
namespace {

class CudaNcclDevice final : public NcclDevice {
 public:
  explicit CudaNcclDevice(Backend& backend) : backend_(backend) {}
  ~CudaNcclDevice() override { backend_.stream->synchronize(); }

  void* stream() override { return cuda_stream_handle(*backend_.stream); }
  Result<std::byte*> scratch(std::size_t bytes) override {
    if (memory_.empty() || memory_.back().bytes() < bytes) {
      TRY(Buffer more, backend_.device->allocate(bytes));
      memory_.push_back(std::move(more));
    }
    return static_cast<std::byte*>(memory_.back().data());
  }
  void add_parts(float* sum, const float* parts, std::size_t count, int ranks, int own) override {
    cuda_add_parts(*backend_.stream, sum, parts, static_cast<std::int64_t>(count), ranks, own);
  }

 private:
  Backend& backend_;
  std::vector<Buffer> memory_;  // CUDA graphs contain addresses of all buffers
};

// The groups over NCCL: all except the group of all ranks, which exchanges no values of devices. A stage
// first meets the stage before it, so the stages meet one after the other.
constexpr auto kOverNccl = {&RankGroups::tensor, &RankGroups::from_stage_before,
                            &RankGroups::to_stage_behind};

// Returns the first error. If NCCL does not work, it still creates the other groups, because the other ranks
// of those groups wait for this rank. If a rank does not respond, the start ends (unavailable).
Result<> create_nccl_groups(Backend& backend, const RankGroups& host,
                            const std::shared_ptr<const NcclLibrary>& nccl, int timeout_ms,
                            RankGroups& groups) {
  Result<> first;
  for (const auto group : kOverNccl) {
    if (!(host.*group)) continue;
    auto created = NcclGroup::create(nccl, std::make_unique<CudaNcclDevice>(backend), *(host.*group),
                                     {.name = host.all->rank(), .timeout_ms = timeout_ms});
    if (created) {
      groups.*group = *std::move(created);
    } else {
      if (first) first = std::unexpected(created.error());
      if (created.error().code == ErrorCode::unavailable) return first;
    }
  }
  return first;
}

void abort_nccl_groups(RankGroups& groups) {
  for (const auto group : kOverNccl)
    if (groups.*group) static_cast<NcclGroup&>(*(groups.*group)).abort();
}

// Returns whether `mine` is true on all ranks.
Result<bool> all_agree(const RankGroups& host, bool mine) {
  const auto own = static_cast<std::byte>(mine);
  std::vector<std::byte> all(static_cast<std::size_t>(host.all->size()));
  host.all->all_gather({&own, 1}, all);
  TRY_VOID(host.all->status());
  return std::ranges::find(all, std::byte{0}) == all.end();
}

DeviceGroups over_host(Backend& backend, const RankGroups& host, std::string why) {
  return {.groups = staged_groups(backend, host), .on_stream = false, .about = std::move(why)};
}

Result<DeviceGroups> connect(Backend& backend, const RankGroups& host, bool own_device, int timeout_ms) {
  const auto nccl = NcclLibrary::open();
  const bool possible = own_device && nccl && !host.experts;
  TRY(const bool all_possible, all_agree(host, possible));
  if (!all_possible) {
    if (!own_device) return over_host(backend, host, "several ranks share a GPU");
    return over_host(backend, host, nccl ? "NCCL is not available to all ranks" : nccl.error().message);
  }
  RankGroups groups;
  const Result<> created = create_nccl_groups(backend, host, *nccl, timeout_ms, groups);
  if (!created && created.error().code == ErrorCode::unavailable) return std::unexpected(created.error());
  TRY(const bool all_work, all_agree(host, created.has_value()));
  if (!all_work) {
    abort_nccl_groups(groups);
    return over_host(backend, host, created ? "NCCL does not work on another rank" : created.error().message);
  }
  return DeviceGroups{.groups = std::move(groups), .on_stream = true, .about = "NCCL " + (*nccl)->version()};
}

}  // namespace

Result<DeviceGroups> device_groups(Backend& backend, RankGroups& host, bool own_device, int timeout_ms) {
  host.set_timeout_ms(timeout_ms);
  TRY(DeviceGroups groups, connect(backend, host, own_device, timeout_ms));
  host.set_timeout_ms(0);  // loading weights takes any time
  return groups;
}

}  // namespace octavo
