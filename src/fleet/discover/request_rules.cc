#include "fleet/discover/request_rules.h"

#include "fleet/discover/json_text.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <limits>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

const json::value* at(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  return value.find_pointer(pointer, error);
}

// Returns whether the object applies to the pool. An object without a poolRef applies to all pools in its
// namespace.
bool is_for(const json::value& object, std::string_view pool) {
  const std::string name = text_at(object, "/spec/poolRef/name");
  return name.empty() || name == pool;
}

const json::array& list_at(const json::value& value, std::string_view pointer) {
  static const json::array kNone;
  const json::value* found = at(value, pointer);
  return found && found->is_array() ? found->get_array() : kNone;
}

const std::string& drawn(const std::vector<ModelRewrite::Target>& targets, double unit) {
  std::int64_t total = 0;
  for (const auto& target : targets) total += target.weight;
  if (total == 0) return targets[static_cast<std::size_t>(unit * static_cast<double>(targets.size()))].model;
  double left = unit * static_cast<double>(total);
  for (const auto& target : targets) {
    left -= static_cast<double>(target.weight);
    if (left < 0) return target.model;
  }
  return targets.back().model;
}

}  // namespace

std::optional<std::string> RequestRules::rewritten(std::string_view model, double unit) const {
  const auto find = [&](bool exact) -> const ModelRewrite::Rule* {
    for (const ModelRewrite& rewrite : rewrites)
      for (const ModelRewrite::Rule& rule : rewrite.rules)
        if (exact ? std::ranges::find(rule.models, model) != rule.models.end() : rule.models.empty())
          return &rule;
    return nullptr;
  };
  const ModelRewrite::Rule* rule = find(true);
  if (!rule) rule = find(false);
  if (!rule) return std::nullopt;
  return drawn(rule->targets, unit);
}

std::optional<int> objective_priority(const json::object& object, std::string_view pool) {
  const json::value value = object;
  if (!is_for(value, pool)) return std::nullopt;
  const json::value* priority = at(value, "/spec/priority");
  if (!priority) return 0;
  if (!priority->is_int64() || priority->get_int64() < std::numeric_limits<int>::min() ||
      priority->get_int64() > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(priority->get_int64());
}

std::optional<ModelRewrite> model_rewrite(const json::object& object, std::string_view pool) {
  const json::value value = object;
  if (!is_for(value, pool)) return std::nullopt;
  ModelRewrite rewrite{.created = text_at(value, "/metadata/creationTimestamp"),
                       .name = text_at(value, "/metadata/name"),
                       .rules = {}};
  for (const json::value& each : list_at(value, "/spec/rules")) {
    ModelRewrite::Rule rule;
    for (const json::value& match : list_at(each, "/matches"))
      if (std::string model = text_at(match, "/model/value"); !model.empty())
        rule.models.push_back(std::move(model));
    for (const json::value& target : list_at(each, "/targets")) {
      const json::value* weight = at(target, "/weight");
      const std::int64_t number = weight && weight->is_int64() ? weight->get_int64() : 1;
      if (std::string model = text_at(target, "/modelRewrite"); !model.empty())
        rule.targets.push_back({std::move(model), std::clamp<std::int64_t>(number, 0, 1'000'000)});
    }
    if (!rule.targets.empty()) rewrite.rules.push_back(std::move(rule));
  }
  if (rewrite.rules.empty()) return std::nullopt;
  return rewrite;
}

}  // namespace octavo::fleet
