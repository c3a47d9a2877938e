#include "model/workspaces.h"

#include <numeric>

#include "model/adapter.h"
#include "model/inputs/hidden.h"

namespace octavo {
namespace {

struct BlockScratch {};    // u8
struct AdapterScratch {};  // u8

Slots slots_of(const ModelSpec& spec, const Network& network, DType activation, const DecoderLimits& limits) {
  Slots slots;
  std::int64_t scratch = 0;
  const Arena arena{.tokens = limits.max_tokens,
                    .logit_rows = limits.max_logit_rows,
                    .activation = activation,
                    .sums = spec.shard.size > 1 ? DType::f32 : activation,
                    .scratch = Scratch(scratch),
                    .slots = slots};
  for (const NetworkPart* part : network.parts()) part->reserve(arena);
  RowKeeper(limits.kept_layers, spec.dim).reserve(arena);
  slots.add<BlockScratch>(DType::u8, {scratch});
  slots.add<AdapterScratch>(DType::u8,
                            {adapter_scratch_bytes(spec, activation, limits.max_tokens, limits.max_logit_rows,
                                                   limits.max_adapter_rank)});
  return slots;
}

}  // namespace

std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits) {
  return slots_of(spec, network_of(spec), activation, limits).bytes();
}

Result<Workspaces> Workspaces::allocate(const Model& model, Backend& backend, const DecoderLimits& limits) {
  Slots slots = slots_of(model.spec, model.network, model.activation, limits);
  TRY(Buffer memory, backend.device->allocate(static_cast<std::size_t>(slots.bytes())));
  slots.bind(memory);
  if (const View rows = slots.all<EveryRow>()) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(rows.size(0)));
    std::iota(numbers.begin(), numbers.end(), 0);
    backend.device->upload(*backend.stream, rows, numbers.data());
    backend.stream->synchronize();
  }
  return Workspaces(std::move(slots), std::move(memory));
}

Scratch Workspaces::of_block() const { return Scratch(slots_.all<BlockScratch>()); }
Scratch Workspaces::of_adapters() const { return Scratch(slots_.all<AdapterScratch>()); }

}  // namespace octavo
