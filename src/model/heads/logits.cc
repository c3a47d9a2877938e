#include "model/heads/logits.h"

#include <span>

#include "dist/process_group.h"
#include "model/adapter.h"

namespace octavo {

LogitsHead::LogitsHead(const ModelSpec& spec, const Ends& ends)
    : ends_(ends),
      dim_(spec.dim),
      first_(spec.shard.first(spec.vocab)),
      count_(spec.shard.count(spec.vocab)),
      scale_(spec.logits.scale),
      soft_cap_(spec.logits.soft_cap) {
  Shard shard = spec.shard;
  for (shard.rank = 0; shard.rank <= shard.size; ++shard.rank)
    part_bytes_.push_back(static_cast<std::size_t>(shard.first(spec.vocab)) * sizeof(float));
  if (!spec.logits.bias) return;
  const std::string& name = spec.names.logits_bias;
  bias_ = Namer(spec.names, "").vector({name.empty() ? spec.names.lm_head + ".bias" : name}, {spec.vocab});
  if (!name.empty()) bias_.parts[0].shape = {1, spec.vocab};
  if (spec.shard.size == 1) return;
  const MatrixParameter& output = spec.logits.tied ? ends.embedding : ends.lm_head;
  bias_.order = output.order;
  bias_.size = output.rows;
}

void LogitsHead::reserve(Arena arena) const {
  arena.slots.add<HeadRows>(DType::f32, {arena.logit_rows, dim_});
  arena.slots.add<HeadFactors>(arena.activation, {arena.logit_rows, dim_});
}

void LogitsHead::run(const Step& step, const View& rows, const View& out,
                     const StepAdapters* adapters) const {
  const Ops& ops = step.backend.ops;
  Stream& stream = *step.backend.stream;
  const std::int64_t count = rows.size(0);
  const View residual = step.slots.all<HeadRows>().rows(0, count),
             x = step.slots.all<HeadFactors>().rows(0, count);
  ops.gather_rows(stream, {.x = step.residual.all(), .rows = rows, .out = residual});
  ops.add_norm(stream, {.residual = residual, .norm = ends_.final_norm.norm(), .out = x});
  const View own = out.columns(first_, count_);
  ops.matmul(stream, {.x = x, .w = ends_.output(), .bias = bias_.value, .y = own});
  if (adapters != nullptr) add_changes(step.backend, *adapters, step.adapter_scratch, x, kOutputIndex, own);
  if (step.ranks != nullptr) {
    CHECK(out.contiguous());
    step.ranks->gather_rows(
        std::as_writable_bytes(std::span(out.as<float>(), static_cast<std::size_t>(out.elements()))),
        part_bytes_.back(), part_bytes_, 0);
    if (step.ranks->rank() > 0) return;
  }
  if (scale_ != 1 || soft_cap_ != 0)
    ops.scale_logits(stream, {.logits = out, .scale = scale_, .soft_cap = soft_cap_});
}

}  // namespace octavo
