// endpoint-attribute-scorer: prefers low (or high) values of an attribute, scaled by a configured range or
// by the candidates' range. Endpoints without the attribute have the score 0.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "fleet/decide/attribute.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kLow = "linear_lower_is_better", kHigh = "linear_higher_is_better";

struct ValueRange {
  double min = 0, max = 0;
};

class EndpointAttributeScorer : public Scorer {
 public:
  AttributeKey attribute;
  bool lower_is_better = false;
  std::optional<ValueRange> fixed;

  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    const ValueRange range = fixed ? *fixed : range_of(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto value = candidates[i]->state.attribute(attribute);
      if (!value) {
        scores[i] = 0;
      } else if (range.min == range.max) {
        scores[i] = 1;
      } else {
        const double part = std::clamp((*value - range.min) / (range.max - range.min), 0.0, 1.0);
        scores[i] = lower_is_better ? 1 - part : part;
      }
    }
  }

 private:
  ValueRange range_of(std::span<const Member* const> candidates) const {
    ValueRange range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (const Member* member : candidates)
      if (const auto value = member->state.attribute(attribute))
        range = {std::min(range.min, *value), std::max(range.max, *value)};
    return range;
  }
};

void read_normalization(Parameters& fields, EndpointAttributeScorer& scorer) {
  fields.read_object("fixedRange", [&](Parameters& bounds) {
    ValueRange& range = scorer.fixed.emplace();
    bounds.read("min", range.min, -kAttributeMax, kAttributeMax);
    bounds.read("max", range.max, -kAttributeMax, kAttributeMax);
    if (range.min >= range.max) bounds.fail("min", "must be less than max");
  });
  fields.read_object("adaptiveRange", [](Parameters&) {});
  if (scorer.fixed && fields.get("adaptiveRange"))
    fields.fail("adaptiveRange", "cannot be combined with fixedRange");
}

}  // namespace

std::unique_ptr<Plugin> make_endpoint_attribute_scorer(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<EndpointAttributeScorer>();
  std::string algorithm;
  plugin->attribute = read_attribute(parameters, "attributeKey");
  parameters.read_object("algorithm", [&](Parameters& fields) {
    fields.read("type", algorithm);
    fields.read_object("normalization", [&](Parameters& how) { read_normalization(how, *plugin); });
  });
  if (algorithm != kLow && algorithm != kHigh)
    parameters.fail("algorithm.type", "must be linear_lower_is_better or linear_higher_is_better");
  plugin->lower_is_better = algorithm == kLow;
  return plugin;
}

}  // namespace octavo::fleet
