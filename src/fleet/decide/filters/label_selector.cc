// label-selector-filter: keeps endpoints whose labels match a Kubernetes label selector. May remove all
// endpoints.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <vector>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;
using Labels = std::map<std::string, std::string>;

struct Expression {
  enum class Operator { in, not_in, exists, does_not_exist };
  std::string key = {};
  Operator op = Operator::in;
  std::vector<std::string> values = {};

  bool holds(const Labels& labels) const {
    const auto label = labels.find(key);
    const bool has_label = label != labels.end();
    switch (op) {
      case Operator::in:
        return has_label && std::ranges::find(values, label->second) != values.end();
      case Operator::not_in:
        return !has_label || std::ranges::find(values, label->second) == values.end();
      case Operator::exists:
        return has_label;
      case Operator::does_not_exist:
        return !has_label;
    }
    return false;
  }
};

class LabelSelectorFilter : public Filter {
 public:
  std::vector<Expression> expressions;

  void filter(Cycle&, Candidates& candidates) override {
    std::erase_if(candidates, [&](const Member* member) {
      return !std::ranges::all_of(expressions,
                                  [&](const Expression& e) { return e.holds(member->endpoint->labels); });
    });
  }
};

// Returns the error message, or "" if the expression is valid.
std::string read_expression(const json::value& value, Expression& expression) {
  constexpr std::string_view kForm = "must be a list of {key, operator, values}";
  constexpr std::pair<std::string_view, Expression::Operator> kOperators[] = {
      {"In", Expression::Operator::in},
      {"NotIn", Expression::Operator::not_in},
      {"Exists", Expression::Operator::exists},
      {"DoesNotExist", Expression::Operator::does_not_exist}};
  if (!value.is_object()) return std::string(kForm);
  Parameters fields(value.get_object(), "");
  std::string op;
  fields.read("key", expression.key);
  fields.read("operator", op);
  const json::value* values = fields.get("values");
  if (!fields.done() || expression.key.empty() || (values && !values->is_array())) return std::string(kForm);
  const auto known =
      std::ranges::find(kOperators, op, &std::pair<std::string_view, Expression::Operator>::first);
  if (known == std::end(kOperators)) return "operator must be In, NotIn, Exists or DoesNotExist";
  expression.op = known->second;
  for (const json::value& each : values ? values->get_array() : json::array()) {
    if (!each.is_string()) return "values must be strings";
    expression.values.emplace_back(each.get_string());
  }
  const bool wants_values =
      expression.op == Expression::Operator::in || expression.op == Expression::Operator::not_in;
  return wants_values == expression.values.empty()
             ? "values must be given with In and NotIn, and not with Exists and DoesNotExist"
             : "";
}

}  // namespace

std::unique_ptr<Plugin> make_label_selector_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<LabelSelectorFilter>();
  if (const json::value* labels = parameters.get("matchLabels")) {
    if (!labels->is_object()) {
      parameters.fail("matchLabels", "must be an object");
    } else {
      for (const auto& [key, value] : labels->get_object()) {
        if (!value.is_string()) parameters.fail("matchLabels", "must be an object whose values are strings");
        plugin->expressions.push_back(
            {.key = key, .values = {value.is_string() ? std::string(value.get_string()) : ""}});
      }
    }
  }
  if (const json::value* list = parameters.get("matchExpressions")) {
    if (!list->is_array()) parameters.fail("matchExpressions", "must be a list");
    for (const json::value& each : list->is_array() ? list->get_array() : json::array()) {
      const std::string wrong = read_expression(each, plugin->expressions.emplace_back());
      if (!wrong.empty()) parameters.fail("matchExpressions", wrong);
    }
  }
  return plugin;
}

}  // namespace octavo::fleet
