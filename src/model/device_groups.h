// Groups for values in the memory of devices that the host cannot access, such as GPUs.
#pragma once

#include <string>

#include "dist/rank_layout.h"
#include "kernels/ops.h"

namespace octavo {

struct DeviceGroups {
  RankGroups groups;
  // True if operations are enqueued on the device's stream (NcclGroup), so that steps may be captured in CUDA
  // graphs. False if the host exchanges the values (StagedGroup).
  bool on_stream = false;
  std::string about = {};  // for the log: NCCL's version, or why NCCL is not used
};

// All ranks must call it. `host` has the groups of the same ranks for host memory. `backend` and `host` must
// outlive the result. own_device: whether no other rank uses the device. NCCL is used if it works on all
// ranks. Returns an error that names the rank if a rank dies, or is not connected after timeout_ms.
Result<DeviceGroups> device_groups(Backend& backend, RankGroups& host, bool own_device, int timeout_ms);

}  // namespace octavo
