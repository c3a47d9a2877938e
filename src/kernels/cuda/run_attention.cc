#include "kernels/cuda/params.h"

namespace octavo::cuda {

void run_attention(Stream& stream, const AttentionArgs& args) {
  AttentionParams params{};
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  CHECK(plan.window() == 0 || plan.window() == args.window, "a plan for a window of {}, a layer of {}",
        plan.window(), args.window);
  CHECK(plan.causal() == args.causal, "the plan of a layer that is causal and one that is not");
  CHECK(!args.distance_bias, "a form of attention that this backend lacks");
  params.sequences = plan.tables();
  params.work = plan.work();
  params.q = rows_of(args.q);
  params.out = rows_of(args.out);
  params.q_heads = static_cast<int>(args.q.size(1));
  params.group = params.q_heads / args.cache.spec.kv_heads;
  params.cache = cache_of(args.cache);
  params.scale = args.scale;
  params.window = args.window;
  params.chunk = args.chunk;
  params.causal = args.causal;
  params.soft_cap = args.soft_cap;
  params.slopes = data_of<float>(args.slopes);
  params.sinks = data_of<float>(args.sinks);
  if (args.chosen) {
    params.chosen = args.chosen.as<std::int32_t>();
    params.chosen_stride = args.chosen.stride[0];
    params.chosen_most = args.chosen.size(1);
  }
  attention(handle_of(stream), params);
}

void run_angles(Stream& stream, const AnglesArgs& args) {
  angles(handle_of(stream), {.n = args.cos.size(0),
                             .pairs = args.cos.size(1),
                             .positions = args.positions.as<std::int32_t>(),
                             .frequencies = args.frequencies.as<float>(),
                             .scale = args.scale,
                             .cos = rows_of(args.cos),
                             .sin = rows_of(args.sin)});
}

void run_qkv_store(Stream& stream, const QkvStoreArgs& args) {
  const auto weight_stride = [](const Norm& norm) {
    return norm.weight.rank == 2 ? norm.weight.stride[0] : 0;
  };
  qkv_store(handle_of(stream), {.n = args.q_out.size(0),
                                .qkv = rows_of(args.qkv),
                                .q_heads = args.q_heads,
                                .q_norm = params_of(args.q_norm),
                                .k_norm = params_of(args.k_norm),
                                .q_weight_stride = weight_stride(args.q_norm),
                                .k_weight_stride = weight_stride(args.k_norm),
                                .norm_whole_row = args.norm_whole_row,
                                .norm_turned = args.norm_turned,
                                .v_norm = params_of(args.v_norm),
                                .stores = args.stores,
                                .cos = args.rope.cos ? rows_of(args.rope.cos) : Rows{},
                                .sin = args.rope.sin ? rows_of(args.rope.sin) : Rows{},
                                .rotary_dim = args.rope.rotary_dim,
                                .interleaved = args.rope.interleaved,
                                .slots = args.slots.as<std::int64_t>(),
                                .cache = cache_of(args.cache),
                                .q_out = rows_of(args.q_out)});
}

void run_head_matmul(Stream& stream, const HeadMatmulArgs& args) {
  matmul(handle_of(stream), {.m = args.y.size(0),
                             .rows = args.y.size(2),
                             .cols = args.w.cols(),
                             .x = rows_of(args.x),
                             .w = numbers_of(args.w),
                             .bias = nullptr,
                             .y = rows_of(args.y),
                             .heads = static_cast<int>(args.y.size(1)),
                             .x_head = args.x.stride[1],
                             .y_head = args.y.stride[1],
                             .hopper = cuda_stream(stream).hopper()});
}

void run_choose_tokens(Stream& stream, const ChooseTokensArgs& args) {
  const auto& plan = static_cast<const CudaAttentionPlan&>(args.plan);
  ChooseParams params{.q = rows_of(args.q),
                      .n = args.q.size(0),
                      .heads = args.q.size(1),
                      .q_head = args.q.stride[1],
                      .weights = rows_of(args.weights),
                      .cache = cache_of(args.cache),
                      .sequence_count = plan.sequences(),
                      .sequences = plan.tables(),
                      .chosen = args.chosen.as<std::int32_t>(),
                      .chosen_stride = args.chosen.stride[0],
                      .most = args.chosen.size(1)};
  plan.describe_scores(params);
  choose_tokens(handle_of(stream), params);
}

void run_latent_store(Stream& stream, const LatentStoreArgs& args) {
  latent_store(handle_of(stream), {.n = args.kv.size(0),
                                   .heads = static_cast<int>(args.q.size(1)),
                                   .kv = rows_of(args.kv),
                                   .index_keys = rows_of(args.index_keys),
                                   .norm = params_of(args.norm),
                                   .cos = rows_of(args.rope.cos),
                                   .sin = rows_of(args.rope.sin),
                                   .interleaved = args.rope.interleaved,
                                   .slots = args.slots.as<std::int64_t>(),
                                   .cache = cache_of(args.cache),
                                   .q = rows_of(args.q),
                                   .q_out = rows_of(args.q_out),
                                   .q_dim = args.q.size(2),
                                   .q_head = args.q.stride[1],
                                   .q_out_head = args.q_out.stride[1]});
}

}  // namespace octavo::cuda
