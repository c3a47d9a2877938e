// Solar Pro (Upstage, 2024): Llama in which some layers blend the residual with the residual before an
// earlier layer.
#include <algorithm>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_solar(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  const int layers = static_cast<int>(spec.layers.size());
  // The first number is for training, the second for inference.
  TRY(const std::vector<double> shares, config.numbers("bskcn_tv", 2, {0, 0.999}));
  // Each layer in the second list blends in the residual before the closest earlier layer in the first list.
  for (const auto& [kept, mixed] : {std::pair("bskcn_1", "bskcn_3"), std::pair("bskcn_2", "bskcn_4")}) {
    TRY(const std::vector<int> from, config.integers(kept, {0, 1 << 20}));
    TRY(const std::vector<int> to, config.integers(mixed, {0, 1 << 20}));
    for (const int layer : to) {
      if (layer >= layers)
        continue;  // Some checkpoints contain only the first layers, but the lists are for the full model.
      int source = -1;
      for (const int earlier : from)
        if (earlier <= layer) source = std::max(source, earlier);
      LayerSpec& spec_of = spec.layers[static_cast<std::size_t>(layer)];
      if (source < 0 || spec_of.blend)
        return field_failure(mixed, ErrorCode::unsupported,
                             "{}: layer {} has {} earlier residual, but must have exactly one",
                             config.where(mixed), layer, source < 0 ? "no" : "more than one");
      spec_of.blend = Blend{.layer = source, .share = static_cast<float>(shares[1])};
    }
  }
  return spec;
}

std::span<const Family> solar_families() {
  static constexpr Family kRows[] = {{"SolarForCausalLM", describe_solar}};
  return kRows;
}

}  // namespace octavo
