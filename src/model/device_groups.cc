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

// Creates the groups over NCCL, except the group of all ranks, which exchanges no values of devices.
Result<RankGroups> nccl_groups(Backend& backend, const RankGroups& host,
                               const std::shared_ptr<const NcclLibrary>& nccl) {
  RankGroups groups;
  // A stage first meets the stage before it, so the stages meet one after the other.
  for (const auto group : {&RankGroups::tensor, &RankGroups::from_stage_before, &RankGroups::to_stage_behind})
    if (host.*group) {
      TRY(groups.*group, NcclGroup::create(nccl, std::make_unique<CudaNcclDevice>(backend), *(host.*group)));
    }
  return groups;
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

}  // namespace

Result<DeviceGroups> device_groups(Backend& backend, const RankGroups& host, bool own_device) {
  const auto nccl = NcclLibrary::open();
  const bool possible = own_device && nccl && !host.experts;
  TRY(const bool all_possible, all_agree(host, possible));
  if (!all_possible) {
    if (!own_device) return over_host(backend, host, "several ranks share a GPU");
    return over_host(backend, host, nccl ? "NCCL is not available to all ranks" : nccl.error().message);
  }
  auto groups = nccl_groups(backend, host, *nccl);
  TRY(const bool all_work, all_agree(host, groups.has_value()));
  if (!all_work) {
    std::string why = groups ? "NCCL does not work on another rank" : groups.error().message;
    groups = RankGroups();
    return over_host(backend, host, std::move(why));
  }
  return DeviceGroups{.groups = *std::move(groups), .on_stream = true, .about = "NCCL " + (*nccl)->version()};
}

}  // namespace octavo
