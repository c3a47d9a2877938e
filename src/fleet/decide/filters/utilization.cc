// utilization-filter: removes endpoints with a metric above its limit.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <vector>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

struct Figure {
  std::string_view name;
  double max;  // upper bound of the configured limit
  double (*of)(const Cycle&, const Member&);
};
constexpr Figure kFigures[] = {
    {"active-requests", 1e9, [](const Cycle& c, const Member& m) -> double { return c.load(m).requests; }},
    {"kv-cache-utilization", 1, [](const Cycle&, const Member& m) { return m.state.kv_usage; }},
    {"running-requests", 1e9, [](const Cycle&, const Member& m) -> double { return m.state.running; }},
    {"waiting-queue", 1e9, [](const Cycle&, const Member& m) -> double { return m.state.waiting; }},
};

struct Condition {
  const Figure* figure;
  double max;
};

class UtilizationFilter : public Filter {
 public:
  std::vector<Condition> conditions;
  bool fallback = false;

  void filter(Cycle& cycle, Candidates& candidates) override {
    const auto above = [&](const Member* member) {
      return std::ranges::any_of(conditions,
                                 [&](const Condition& c) { return c.figure->of(cycle, *member) > c.max; });
    };
    if (!fallback || !std::ranges::all_of(candidates, above)) std::erase_if(candidates, above);
  }
};

void read_condition(const boost::json::value& value, Parameters& parameters, std::size_t i,
                    UtilizationFilter& filter) {
  const std::string where = fmt::format("conditions[{}]", i);
  if (!value.is_object()) return parameters.fail(where, "must be an object");
  Parameters fields(value.get_object(), "");
  std::string metric;
  double max = -1;
  fields.read("metric", metric);
  const auto* figure = std::ranges::find(kFigures, metric, &Figure::name);
  if (figure == std::end(kFigures))
    return parameters.fail(
        where + ".metric",
        "must be active-requests, kv-cache-utilization, running-requests or waiting-queue");
  fields.read("maxValue", max, 0, figure->max);
  if (const auto done = fields.done(); !done)
    return parameters.fail(where + "." + done.error().field, done.error().message);
  if (max < 0) return parameters.fail(where + ".maxValue", "must be given");
  filter.conditions.push_back({figure, max});
}

}  // namespace

std::unique_ptr<Plugin> make_utilization_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<UtilizationFilter>();
  std::string producer = "inflight-load-producer";
  parameters.read("fallbackOnEmpty", plugin->fallback);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.read("inFlightLoadProducerName", producer);
  const auto* conditions = parameters.get("conditions");
  if (!conditions || !conditions->is_array() || conditions->get_array().empty())
    parameters.fail("conditions", "must be a list with at least one condition");
  else
    for (std::size_t i = 0; i < conditions->get_array().size(); ++i)
      read_condition(conditions->get_array()[i], parameters, i, *plugin);
  return plugin;
}

}  // namespace octavo::fleet
