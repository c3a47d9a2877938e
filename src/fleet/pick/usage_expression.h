// An expression over the usage of an answer, in the subset of the Common Expression Language (CEL) that
// llm-d's request-attribute-reporter needs.
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
  // operators - ! * / % + < <= > >= == != && || ?: with CEL's precedence. Errors name the position.
  static Result<UsageExpression> parse(std::string_view text);

  // Return the value. All numbers are doubles, as in llm-d. nullopt: a field is missing, or the value has
  // another type.
  std::optional<double> number(const boost::json::object& usage) const;
  std::optional<bool> truth(const boost::json::object& usage) const;

  using Value = std::optional<std::variant<double, bool>>;
  using Evaluate = std::function<Value(const boost::json::object& usage)>;

 private:
  explicit UsageExpression(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}

  Evaluate evaluate_;
};

}  // namespace octavo::fleet
