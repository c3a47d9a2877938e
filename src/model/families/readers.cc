#include "model/families/readers.h"

#include <utility>

#include "model/families/common.h"

namespace octavo {

ModelSpec as_embedder(ModelSpec spec) {
  spec.names.prefixes = {"", "model."};
  spec.head = Head{.pool = spec.bidirectional() ? Pool::mean : Pool::last, .normalise = true};
  return spec;
}

Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config) {
  TRY(Head head, read_classifier(config));
  head.pool = Pool::last;
  head.layers = {{.name = "score", .outputs = static_cast<int>(head.labels.size()), .bias = false}};
  spec.head = std::move(head);
  return spec;
}

}  // namespace octavo
