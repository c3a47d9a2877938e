// endpoint-attribute-filter: keeps endpoints whose attribute is above (or below) a threshold.
#include <algorithm>

#include "fleet/decide/attribute.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

struct Operator {
  std::string_view name;
  bool (*holds)(double value, double threshold);
};
constexpr Operator kOperators[] = {
    {"LessThan", [](double v, double t) { return v < t; }},
    {"LessThanOrEqual", [](double v, double t) { return v <= t; }},
    {"GreaterThan", [](double v, double t) { return v > t; }},
    {"GreaterThanOrEqual", [](double v, double t) { return v >= t; }},
    {"Equal", [](double v, double t) { return v == t; }},
    {"NotEqual", [](double v, double t) { return v != t; }},
};

class EndpointAttributeFilter : public Filter {
 public:
  AttributeKey attribute;
  const Operator* compare = nullptr;
  double threshold = 0;
  bool pass_missing = true;
  bool fallback = false;

  void filter(Cycle&, Candidates& candidates) override {
    const auto fails = [&](const Member* member) {
      const auto value = member->state.attribute(attribute);
      return value ? !compare->holds(*value, threshold) : !pass_missing;
    };
    if (!fallback || !std::ranges::all_of(candidates, fails)) std::erase_if(candidates, fails);
  }
};

void read_threshold(Parameters& fields, EndpointAttributeFilter& filter) {
  std::string compare;
  fields.read("operator", compare);
  fields.read("value", filter.threshold, -kAttributeMax, kAttributeMax);
  const auto* found = std::ranges::find(kOperators, compare, &Operator::name);
  if (found == std::end(kOperators))
    fields.fail("operator",
                "must be LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, Equal or NotEqual");
  else
    filter.compare = found;
}

}  // namespace

std::unique_ptr<Plugin> make_endpoint_attribute_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<EndpointAttributeFilter>();
  std::string missing = "Pass", algorithm;
  plugin->attribute = read_attribute(parameters, "attribute");
  parameters.read("onMissing", missing);
  if (missing != "Pass" && missing != "Fail") parameters.fail("onMissing", "must be Pass or Fail");
  plugin->pass_missing = missing == "Pass";
  parameters.read("fallbackOnEmpty", plugin->fallback);
  parameters.read_object("algorithm", [&](Parameters& fields) {
    fields.read("type", algorithm);
    fields.read_object("threshold", [&](Parameters& limits) { read_threshold(limits, *plugin); });
  });
  if (algorithm != "threshold") parameters.fail("algorithm.type", "must be threshold");
  if (!plugin->compare) parameters.fail("algorithm.threshold", "must be given");
  return plugin;
}

}  // namespace octavo::fleet
