#include "fleet/decide/attribute.h"

#include <fmt/format.h>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {

AttributeKey read_attribute(Parameters& parameters, std::string_view field) {
  std::string name, producer;
  parameters.read(field, name);
  parameters.read("producer", producer);
  if (name.empty()) parameters.fail(field, "must be given");
  if (producer.empty()) {
    if (name.contains('/'))
      parameters.fail(field, "must be a name alone; who finds it is the field \"producer\"");
    producer = kCoreMetrics;
  } else if (producer != kCoreMetrics && producer != kGpuMetrics) {
    parameters.fail("producer", fmt::format("must be {} or {}", kCoreMetrics, kGpuMetrics));
  }
  return {std::move(name), std::move(producer)};
}

}  // namespace octavo::fleet
