#include "fleet/pick/flow_control_config.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kRequestsMax = 100'000'000;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;

// Returns whether the type is one of llm-d's eviction policies, which are alpha. They have no effect,
// because eviction always follows their rules.
bool is_eviction_policy(std::string_view type) {
  return type == "sheddable-eviction-filter" || type == "priority-then-time-eviction-order-policy";
}

// Returns the plugin with this name. If it is missing, adds an error and returns null.
template <class Value>
const Value* named(Parameters& fields, std::string_view field, const std::string& name,
                   const std::map<std::string, Value, std::less<>>& plugins) {
  const auto found = plugins.find(name);
  if (found != plugins.end()) return &found->second;
  fields.fail(field, fmt::format("no plugin of this type has the name {}", quoted_text(name)));
  return nullptr;
}

}  // namespace

bool FlowControlConfig::read_plugin(const std::string& name, std::string_view type, Parameters& parameters) {
  if (type == "utilization-detector") {
    detectors_[name] = UtilizationDetector::read(parameters);
  } else if (type == "concurrency-detector") {
    detectors_[name] = ConcurrencyDetector::read(parameters);
  } else if (const UsageLimitRow* limit = find_usage_limit(type)) {
    usage_limits_[name] = limit->make(parameters);
  } else if (const FairnessRow* fairness = find_fairness(type)) {
    fairness_[name] = fairness->make(parameters);
  } else if (const Ordering* ordering = find_ordering(type)) {
    orderings_[name] = ordering;
  } else {
    return is_eviction_policy(type);
  }
  return true;
}

bool FlowControlConfig::is_alpha(std::string_view type) {
  const UsageLimitRow* limit = find_usage_limit(type);
  return limit ? limit->alpha : is_eviction_policy(type);
}

Result<> FlowControlConfig::read_band(const json::value& band, const std::string& where,
                                      BandOptions& options) {
  if (!band.is_object()) return invalid(where, "must be an object");
  Parameters fields(band.get_object(), where);
  fields.get("priority");  // already read by read_bands()
  std::uint64_t bytes = 0, requests = 0;
  fields.read_quantity("maxBytes", bytes, kBytesMax);
  fields.read_quantity("maxRequests", requests, kRequestsMax);
  if (bytes > 0) options.bytes_max = bytes;  // 0 means "not set", as in llm-d
  if (requests > 0) options.requests_max = requests;
  if (fields.get("defaultRequestTTL")) fields.read_duration("defaultRequestTTL", options.ttl_us.emplace());
  std::string fairness, ordering(options.ordering->type);
  fields.read("fairnessPolicyRef", fairness);
  fields.read("orderingPolicyRef", ordering);
  if (!fairness.empty() && !fairness_.contains(fairness) && find_fairness(fairness))
    fairness_[fairness] = make_fairness(fairness);
  if (!fairness.empty())
    if (const auto* own = named(fields, "fairnessPolicyRef", fairness, fairness_)) options.fairness = *own;
  if (const Ordering* row = find_ordering(ordering))
    options.ordering = row;
  else if (const auto* own = named(fields, "orderingPolicyRef", ordering, orderings_))
    options.ordering = *own;
  return fields.done();
}

Result<> FlowControlConfig::read_bands(const json::value& bands) {
  constexpr std::string_view kWhere = "flowControl.priorityBands";
  if (!bands.is_array()) return invalid(kWhere, "must be a list");
  for (std::size_t i = 0; i < bands.get_array().size(); ++i) {
    const json::value& band = bands.get_array()[i];
    const std::string where = fmt::format("{}[{}]", kWhere, i);
    const json::value* priority = band.is_object() ? band.get_object().if_contains("priority") : nullptr;
    boost::system::error_code error;
    const auto number = priority ? priority->to_number<std::int32_t>(error) : 0;
    if (!priority || error) return invalid(where + ".priority", "must be a whole number of 32 bits");
    BandOptions options;
    TRY_VOID(read_band(band, where, options));
    if (!options_.flow.bands.emplace(number, options).second)
      return invalid(where + ".priority", "two bands have the priority {}", number);
  }
  return {};
}

Result<> FlowControlConfig::read_detector(const json::value& section, const std::string& where) {
  if (!section.is_object()) return invalid(where, "must be an object");
  Parameters reference(section.get_object(), where);
  std::string name = "utilization-detector";
  reference.read("pluginRef", name);
  if (const auto* found = named(reference, "pluginRef", name, detectors_)) options_.detector = *found;
  return reference.done();
}

Result<> FlowControlConfig::read_old_detector(const json::value& section) {
  constexpr const char* kWhere = "saturationDetector";
  if (!section.is_object() || section.get_object().contains("pluginRef"))
    return read_detector(section, kWhere);
  Parameters thresholds(section.get_object(), kWhere);
  options_.detector = UtilizationDetector::read(thresholds);
  return thresholds.done();
}

Result<> FlowControlConfig::read_section(const json::value& section) {
  if (!section.is_object()) return invalid("flowControl", "must be an object");
  Parameters fields(section.get_object(), "flowControl");
  FlowOptions& flow = options_.flow;
  fields.read_quantity("maxBytes", flow.bytes_max, kBytesMax);
  fields.read_quantity("maxRequests", flow.requests_max, kRequestsMax);
  fields.read_duration("defaultRequestTTL", flow.ttl_us);
  if (fields.get("noEndpointRequestTTL"))
    fields.read_duration("noEndpointRequestTTL", flow.no_endpoint_ttl_us.emplace());
  bool eviction = false;
  fields.read("enableEviction", eviction);
  options_.evicts = eviction;
  std::string usage_limit = "static-usage-limit-policy";
  fields.read("usageLimitPolicyPluginRef", usage_limit);
  if (const auto* limit = named(fields, "usageLimitPolicyPluginRef", usage_limit, usage_limits_))
    flow.usage_limit = *limit;
  const json::value* detector = fields.get("saturationDetector");
  const json::value* band = fields.get("defaultPriorityBand");
  const json::value* negative = fields.get("defaultNegativePriorityBand");
  const json::value* bands = fields.get("priorityBands");
  TRY_VOID(fields.done());
  if (detector) TRY_VOID(read_detector(*detector, "flowControl.saturationDetector"));
  if (band) TRY_VOID(read_band(*band, "flowControl.defaultPriorityBand", flow.default_band));
  if (negative)
    TRY_VOID(read_band(*negative, "flowControl.defaultNegativePriorityBand", flow.default_negative_band));
  return bands ? read_bands(*bands) : Result<>();
}

}  // namespace octavo::fleet
