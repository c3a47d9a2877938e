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
    .reserve_sampling = [](Device&, std::int64_t, std::int64_t) -> Result<> { return {}; },
    .embed = reference::embed,
    .add_norm = reference::add_norm,
    .matmul = reference::matmul,
    .activate = reference::activate,
    .keep_tail = reference::keep_tail,
    .scale_rows = reference::scale_rows,
    .clamp = reference::clamp,
    .route = reference::route,
    .grouped_matmul = reference::grouped_matmul,
    .combine = reference::combine,
    .add_rows = reference::add_rows,
    .angles = reference::angles,
    .qkv_store = reference::qkv_store,
    .head_matmul = reference::head_matmul,
    .latent_store = reference::latent_store,
    .choose_tokens = reference::choose_tokens,
    .attention = reference::attention,
    .turn_ends = reference::turn_ends,
    .store_rows = reference::store_rows,
    .gate = reference::gate,
    .causal_conv = reference::causal_conv,
    .gated_delta = reference::gated_delta,
    .scan = reference::scan,
    .channel_scan = reference::channel_scan,
    .wkv = reference::wkv,
    .compress = reference::compress,
    .collapse_streams = reference::collapse_streams,
    .expand_streams = reference::expand_streams,
    .predict_streams = reference::predict_streams,
    .correct_streams = reference::correct_streams,
    .match_size = reference::match_size,
    .gather_rows = reference::gather_rows,
    .pool = reference::pool,
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
