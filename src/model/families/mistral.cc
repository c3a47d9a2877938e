// Mistral (Jiang et al., 2023): Llama with a sliding window in every layer.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_mistral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_windows(spec, config, [](int) { return true; }));
  return spec;
}

}  // namespace octavo
