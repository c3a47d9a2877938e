#include "engine/load/choose_device.h"

#include "base/log.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

// Returns an error if several ranks are requested, or if `check` fails for a reason that does not depend on
// the device.
Result<Backend> choose_automatically(const EngineOptions& options, const CheckModel& check) {
  const auto on_cpu = [&](std::string_view why) {
    log_info("device: cpu, {}", why);
    return make_cpu_backend({.threads = options.device.threads, .isa = {}});
  };
  auto gpu = make_cuda_backend();
  if (!gpu) return on_cpu(fmt::format("no GPU can be used: {}", gpu.error().message));
  if (const int ranks = options.parallel.rank_layout().size(); ranks > 1)
    return field_failure("device", ErrorCode::unsupported,
                         "{} ranks (tensor_parallel_size x pipeline_parallel_size) can run only on CPUs, but "
                         "device auto chooses the GPU here: set --device cpu, or set both sizes to 1",
                         ranks);
  if (const Result<> supported = check(*gpu); !supported) {
    const Error& error = supported.error();
    if (error.code != ErrorCode::unsupported || error.field != "device") return std::unexpected(error);
    return on_cpu(fmt::format("the GPU cannot run this model: {}", error.message));
  }
  log_info("device: {}", gpu->name);
  return gpu;
}

}  // namespace

Result<Backend> choose_device(const EngineOptions& options, const CheckModel& check) {
  if (options.device.type == "reference") return make_reference_backend();
  if (options.device.type == "cuda") return make_cuda_backend();
  if (options.device.type == "cpu") return make_cpu_backend({.threads = options.device.threads, .isa = {}});
  if (options.device.type == "auto") return choose_automatically(options, check);
  return invalid("device", "must be auto, cpu, cuda or reference, got {}", options.device.type);
}

}  // namespace octavo
