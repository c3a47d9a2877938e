#include "engine/load/choose_device.h"

#include <algorithm>

#include "base/log.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

// Index of this process among the ranks of all engines of this host.
int process_of_host(const EngineOptions& options, int rank) {
  const int ranks = std::max(1, options.parallel.ranks_of_host());
  return options.index * ranks + rank % ranks;
}

int processes_with_devices(const EngineOptions& options) {
  return options.parallel.data_parallel_size * options.parallel.ranks_of_host();
}

Result<Backend> choose_gpu(const EngineOptions& options, int rank) {
  TRY(Backend gpu, make_cuda_backend(process_of_host(options, rank)));
  if (rank == 0 && !has_own_device(options, *gpu.device))
    log_warning("{} processes share {} GPUs: each process uses a part of a GPU's memory",
                processes_with_devices(options), gpu.device->devices_of_host());
  return gpu;
}

// Returns an error if `check` fails for a reason that does not depend on the device.
Result<Backend> choose_automatically(const EngineOptions& options, int rank, const CheckModel& check) {
  const auto on_cpu = [&](std::string_view why) {
    log_info("device: cpu, {}", why);
    return make_cpu_backend({.threads = options.device.threads, .isa = {}});
  };
  auto gpu = choose_gpu(options, rank);
  if (!gpu) return on_cpu(fmt::format("no GPU can be used: {}", gpu.error().message));
  if (const Result<> supported = check(*gpu); !supported) {
    const Error& error = supported.error();
    if (error.code != ErrorCode::unsupported || error.field != "device") return std::unexpected(error);
    return on_cpu(fmt::format("the GPU cannot run this model: {}", error.message));
  }
  log_info("device: {}", gpu->name);
  return gpu;
}

}  // namespace

bool has_own_device(const EngineOptions& options, const Device& device) {
  return processes_with_devices(options) <= device.devices_of_host();
}

Result<Backend> choose_device(const EngineOptions& options, int rank, const CheckModel& check) {
  if (options.device.type == "reference") return make_reference_backend();
  if (options.device.type == "cuda") return choose_gpu(options, rank);
  if (options.device.type == "cpu") return make_cpu_backend({.threads = options.device.threads, .isa = {}});
  if (options.device.type == "auto") return choose_automatically(options, rank, check);
  return invalid("device", "must be auto, cpu, cuda or reference, got {}", options.device.type);
}

}  // namespace octavo
