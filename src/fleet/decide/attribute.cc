#include "fleet/decide/attribute.h"

#include <fmt/format.h>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {

AttributeKey read_attribute(Parameters& parameters, std::string_view field) {
  std::string name, producer;
  parameters.read(field, name);
  parameters.read("producer", producer);
  if (name.empty()) parameters.fail(field, "must be given");
  // llm-d 0.10 writes name and source as "name/producer".
  if (const std::size_t slash = name.find('/'); producer.empty() && slash != std::string::npos) {
    producer = name.substr(slash + 1);
    name.resize(slash);
  }
  if (producer.empty()) {
    producer = kCoreMetrics;
  } else if (producer != kCoreMetrics && producer != kGpuMetrics) {
    parameters.fail("producer", fmt::format("must be {} or {}", kCoreMetrics, kGpuMetrics));
  }
  return {std::move(name), std::move(producer)};
}

}  // namespace octavo::fleet
