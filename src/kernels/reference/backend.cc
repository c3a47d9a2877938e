#include "kernels/backends.h"
#include "kernels/host_device.h"
#include "kernels/reference/reference.h"

namespace octavo {
namespace {

struct ImmediateStream final : Stream {
  void synchronize() override {}
};

constexpr Ops kReferenceOps{
    .activation = reference::activation_of,
    .prepare = reference::prepare,
    .kv_block_bytes = reference::kv_block_bytes,
    .supports = reference::supports,
    .make_attention_plan = reference::make_attention_plan,
    .plan_attention = reference::plan_attention,
    .embed = reference::embed,
    .add_norm = reference::add_norm,
    .matmul = reference::matmul,
    .activate = reference::activate,
    .qkv_store = reference::qkv_store,
    .attention = reference::attention,
    .gather_rows = reference::gather_rows,
    .put_sampled = reference::put_sampled,
    .scale_logits = reference::scale_logits,
    .sample = reference::sample,
};

}  // namespace

Backend make_reference_backend() {
  return {.name = "reference",
          .ops = kReferenceOps,
          .device = std::make_unique<HostDevice>("reference"),
          .stream = std::make_unique<ImmediateStream>()};
}

}  // namespace octavo
