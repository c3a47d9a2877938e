#include "kernels/backends.h"
#include "kernels/host_device.h"
#include "kernels/reference/reference.h"

namespace octavo {
namespace {

struct ImmediateStream final : Stream {
  void synchronize() override {}
};

#define OCTAVO_ROW(name, Args, backends) .name = reference::name,
constexpr Ops kReferenceOps{
    .has = [](Need) { return true; },
    .activation = reference::activation_of,
    .prepare = reference::prepare,
    .kv_block_bytes = reference::kv_block_bytes,
    .supports = reference::supports,
    .make_attention_plan = reference::make_attention_plan,
    .plan_attention = reference::plan_attention,
    .reserve_sampling = [](Device&, std::int64_t, std::int64_t) -> Result<> { return {}; },
    OCTAVO_OPERATORS(OCTAVO_ROW)};
#undef OCTAVO_ROW

}  // namespace

Backend make_reference_backend() {
  return {.name = "reference",
          .ops = kReferenceOps,
          .device = std::make_unique<HostDevice>("reference"),
          .stream = std::make_unique<ImmediateStream>()};
}

}  // namespace octavo
