#include "fleet/pick/usage_expression.h"

#include <boost/json/value.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

using Value = UsageExpression::Value;
using Evaluate = UsageExpression::Evaluate;

template <class Type>
std::optional<Type> as(const Value& value) {
  const auto* found = value ? std::get_if<Type>(&*value) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

const json::value* find(const json::object& usage, const std::vector<std::string>& path) {
  const json::object* in = &usage;
  const json::value* found = nullptr;
  for (const std::string& field : path) {
    found = in ? in->if_contains(field) : nullptr;
    in = found ? found->if_object() : nullptr;
  }
  return found;
}

template <class Operation>
Evaluate arithmetic(Evaluate left, Evaluate right, Operation operation) {
  return [left = std::move(left), right = std::move(right), operation](const json::object& usage) -> Value {
    const auto a = as<double>(left(usage)), b = as<double>(right(usage));
    return a && b ? Value(operation(*a, *b)) : std::nullopt;
  };
}

// If one side equals `decisive`, the result is `decisive`, even if the value of the second side is missing
// (as in CEL).
Evaluate logical(Evaluate left, Evaluate right, bool decisive) {
  return [left = std::move(left), right = std::move(right), decisive](const json::object& usage) -> Value {
    const auto a = as<bool>(left(usage)), b = as<bool>(right(usage));
    if (a == decisive || b == decisive) return decisive;
    return a && b ? Value(!decisive) : std::nullopt;
  };
}

Evaluate equality(Evaluate left, Evaluate right, bool equal) {
  return [left = std::move(left), right = std::move(right), equal](const json::object& usage) -> Value {
    const Value a = left(usage), b = right(usage);
    return a && b ? Value((*a == *b) == equal) : std::nullopt;
  };
}

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Result<Evaluate> parse() {
    TRY(Evaluate value, choice());
    skip_white();
    if (at_ != text_.size()) return unexpected();
    return value;
  }

 private:
  static constexpr int kDepthMax = 64;
  struct Binary {
    std::string_view sign;
    Evaluate (*make)(Evaluate, Evaluate);
  };
  static constexpr int kLevels = 5;  // number of precedence levels of binary operators

  Result<Evaluate> unexpected() const {
    return invalid("expression", "has a syntax error at position {}: {}", at_,
                   quoted_text(text_.substr(std::min(at_, text_.size()), 32)));
  }
  void skip_white() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view sign) {
    skip_white();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  std::string_view word() {
    skip_white();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<Evaluate> choice() {
    if (++depth_ > kDepthMax) return invalid("expression", "is nested more than {} levels deep", kDepthMax);
    TRY(Evaluate condition, binary(0));
    if (take("?")) {
      TRY(Evaluate yes, choice());
      if (!take(":")) return unexpected();
      TRY(Evaluate no, choice());
      condition = [condition = std::move(condition), yes = std::move(yes),
                   no = std::move(no)](const json::object& usage) -> Value {
        const auto holds = as<bool>(condition(usage));
        return holds ? (*holds ? yes : no)(usage) : std::nullopt;
      };
    }
    --depth_;
    return condition;
  }

  // Returns the binary operators of a precedence level. Level 0 binds weakest. "<=" must be before "<" in the
  // list, because the parser takes the first operator that the text starts with.
  static std::span<const Binary> operators(int level) {
    static constexpr Binary kOr[] = {
        {"||", [](Evaluate a, Evaluate b) { return logical(std::move(a), std::move(b), true); }}};
    static constexpr Binary kAnd[] = {
        {"&&", [](Evaluate a, Evaluate b) { return logical(std::move(a), std::move(b), false); }}};
    static constexpr Binary kRelations[] = {
        {"==", [](Evaluate a, Evaluate b) { return equality(std::move(a), std::move(b), true); }},
        {"!=", [](Evaluate a, Evaluate b) { return equality(std::move(a), std::move(b), false); }},
        {"<=", [](Evaluate a,
                  Evaluate b) { return arithmetic(std::move(a), std::move(b), std::less_equal<double>()); }},
        {">=",
         [](Evaluate a, Evaluate b) {
           return arithmetic(std::move(a), std::move(b), std::greater_equal<double>());
         }},
        {"<",
         [](Evaluate a, Evaluate b) { return arithmetic(std::move(a), std::move(b), std::less<double>()); }},
        {">", [](Evaluate a, Evaluate b) {
           return arithmetic(std::move(a), std::move(b), std::greater<double>());
         }}};
    static constexpr Binary kSums[] = {
        {"+",
         [](Evaluate a, Evaluate b) { return arithmetic(std::move(a), std::move(b), std::plus<double>()); }},
        {"-", [](Evaluate a, Evaluate b) {
           return arithmetic(std::move(a), std::move(b), std::minus<double>());
         }}};
    static constexpr Binary kProducts[] = {
        {"*", [](Evaluate a,
                 Evaluate b) { return arithmetic(std::move(a), std::move(b), std::multiplies<double>()); }},
        {"/", [](Evaluate a,
                 Evaluate b) { return arithmetic(std::move(a), std::move(b), std::divides<double>()); }},
        {"%", [](Evaluate a, Evaluate b) {
           return arithmetic(std::move(a), std::move(b), [](double x, double y) { return std::fmod(x, y); });
         }}};
    static constexpr std::span<const Binary> kByLevel[kLevels] = {kOr, kAnd, kRelations, kSums, kProducts};
    return kByLevel[level];
  }

  Result<Evaluate> binary(int level) {
    if (level == kLevels) return unary();
    TRY(Evaluate left, binary(level + 1));
    for (;;) {
      const Binary* found = nullptr;
      for (const Binary& one : operators(level))
        if (!found && take(one.sign)) found = &one;
      if (!found) return left;
      TRY(Evaluate right, binary(level + 1));
      left = found->make(std::move(left), std::move(right));
    }
  }

  Result<Evaluate> unary() {
    if (++depth_ > kDepthMax) return invalid("expression", "is nested more than {} levels deep", kDepthMax);
    Evaluate value;
    if (take("!")) {
      TRY(const Evaluate of, unary());
      value = [of](const json::object& usage) -> Value {
        const auto holds = as<bool>(of(usage));
        return holds ? Value(!*holds) : std::nullopt;
      };
    } else if (take("-")) {
      TRY(const Evaluate of, unary());
      value = [of](const json::object& usage) -> Value {
        const auto number = as<double>(of(usage));
        return number ? Value(-*number) : std::nullopt;
      };
    } else {
      TRY(value, primary());
    }
    --depth_;
    return value;
  }

  Result<Evaluate> primary() {
    if (take("(")) return closed(choice());
    skip_white();
    double number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc() && at_ < text_.size() && !std::isalpha(static_cast<unsigned char>(text_[at_]))) {
      at_ += static_cast<std::size_t>(end - begin);
      return [number](const json::object&) -> Value { return number; };
    }
    const std::size_t before = at_;
    const std::string_view name = word();
    if (name == "true" || name == "false")
      return [holds = name == "true"](const json::object&) -> Value { return holds; };
    if (name == "usage") return field();
    if (name == "has" && take("(") && word() == "usage") {
      TRY(const std::vector<std::string> path, path_of());
      return closed([path](const json::object& usage) -> Value { return find(usage, path) != nullptr; });
    }
    if ((name == "int" || name == "double") && take("(")) {
      TRY(const Evaluate of, closed(choice()));
      return [of, whole = name == "int"](const json::object& usage) -> Value {
        const auto value = as<double>(of(usage));
        return value ? Value(whole ? std::trunc(*value) : *value) : std::nullopt;
      };
    }
    at_ = before;
    return unexpected();
  }

  Result<Evaluate> closed(Result<Evaluate> value) {
    if (value && !take(")")) return unexpected();
    return value;
  }

  Result<std::vector<std::string>> path_of() {
    std::vector<std::string> path;
    while (take(".")) {
      path.emplace_back(word());
      if (path.back().empty()) return std::unexpected(unexpected().error());
    }
    if (path.empty()) return std::unexpected(unexpected().error());
    return path;
  }

  Result<Evaluate> field() {
    TRY(const std::vector<std::string> path, path_of());
    return [path](const json::object& usage) -> Value {
      const json::value* found = find(usage, path);
      if (found && found->is_bool()) return found->get_bool();
      return found && found->is_number() ? Value(found->to_number<double>()) : std::nullopt;
    };
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<UsageExpression> UsageExpression::parse(std::string_view text) {
  TRY(Evaluate evaluate, ExpressionParser(text).parse());
  return UsageExpression(std::move(evaluate));
}

std::optional<double> UsageExpression::number(const json::object& usage) const {
  return as<double>(evaluate_(usage));
}

std::optional<bool> UsageExpression::truth(const json::object& usage) const {
  return as<bool>(evaluate_(usage));
}

}  // namespace octavo::fleet
