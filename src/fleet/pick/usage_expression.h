// An expression over the usage of a response, for llm-d's request-attribute-reporter. Supports the subset
// of the Common Expression Language (CEL) that the plugin needs.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>

#include "base/error.h"

namespace octavo::fleet {

class UsageExpression {
 public:
  // Supports numbers, true, false, usage.field.field, has(usage.field), int(), double(), ( ), and the
  // operators - ! * / % + < <= > >= == != && || ?: with CEL's precedence. Errors contain the position.
  static Result<UsageExpression> parse(std::string_view text);

  // Each returns the value, or nullopt if a field is missing or the value has the wrong type. All numbers
  // are doubles, as in llm-d.
  std::optional<double> number(const boost::json::object& usage) const;
  std::optional<bool> truth(const boost::json::object& usage) const;

  using Value = std::optional<std::variant<double, bool>>;
  using Evaluate = std::function<Value(const boost::json::object& usage)>;

 private:
  explicit UsageExpression(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}

  Evaluate evaluate_;
};

}  // namespace octavo::fleet
