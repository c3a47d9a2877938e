#include "engine/load/choose_device.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/log.h"
#include "kernels/backends.h"

namespace octavo {

Result<Backend> choose_device(const EngineOptions& options) {
  if (options.device == "reference") return make_reference_backend();
  if (options.device == "cuda") return make_cuda_backend();
  const bool automatic = options.device == "auto";
  if (!automatic && options.device != "cpu")
    return invalid("device", "must be auto, cpu, cuda or reference, got {}", options.device);
  if (automatic) {
    auto cuda = make_cuda_backend();
    if (const int ranks = options.rank_layout().size(); cuda && ranks > 1)
      return field_failure("device", ErrorCode::unsupported,
                           "{} ranks (tensor_parallel_size x pipeline_parallel_size) compute on processors alone, and "
                           "device auto is the GPU here: set --device cpu, or leave out the ranks",
                           ranks);
    if (cuda) {
      log_info("device: cuda");
      return cuda;
    }
    log_info("device: cpu, no GPU can be used: {}", cuda.error().message);
  }
  return make_cpu_backend({.threads = options.threads, .isa = {}});
}

bool falls_back(const Error& refusal) {
  constexpr std::array<std::string_view, 5> kOfTheModel = {"", "device", "head_dim", "kv_lora_rank", "index_head_dim"};
  return refusal.code == ErrorCode::unsupported && std::ranges::find(kOfTheModel, refusal.field) != kOfTheModel.end();
}

}  // namespace octavo
