// by-label: keeps endpoints whose label has one of the given values and, if configured, endpoints without
// the label. If no endpoint is left, the request fails.
#include <algorithm>
#include <boost/json/array.hpp>
#include <vector>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class LabelFilter : public Filter {
 public:
  std::string label;
  std::vector<std::string> values;
  bool none_is_fine = false;

  void filter(Cycle&, Candidates& candidates) override {
    std::erase_if(candidates, [&](const Member* member) {
      const auto found = member->endpoint->labels.find(label);
      if (found == member->endpoint->labels.end()) return !none_is_fine;
      return std::ranges::find(values, found->second) == values.end();
    });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_label_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<LabelFilter>();
  parameters.read("label", plugin->label);
  parameters.read("allowsNoLabel", plugin->none_is_fine);
  if (const auto* values = parameters.get("validValues")) {
    if (!values->is_array()) parameters.fail("validValues", "must be a list of strings");
    for (const auto& value : values->is_array() ? values->get_array() : boost::json::array()) {
      if (!value.is_string()) parameters.fail("validValues", "must be a list of strings");
      plugin->values.emplace_back(value.is_string() ? std::string_view(value.get_string()) : "");
    }
  }
  if (plugin->label.empty()) parameters.fail("label", "must be given");
  if (plugin->values.empty() && !plugin->none_is_fine)
    parameters.fail("validValues", "must be given if allowsNoLabel is false");
  return plugin;
}

}  // namespace octavo::fleet
