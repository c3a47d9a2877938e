// Works off a list of goals, branching where a keyword leaves a choice.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "grammar/schema_reader.h"

namespace octavo::grammar {

class FactsBuilder {
 public:
  explicit FactsBuilder(SchemaReader& reader) : reader_(reader) {}

  Result<std::vector<Facts>> build(const Goals& goals);

  // The goal that the first branch without values could not meet.
  const std::optional<Goal>& death() const { return death_; }

 private:
  using Kind = Goal::Kind;
  struct Branch {
    Facts facts;
    Goals todo, done;
    bool dead = false;
    bool doubly_negated = false;  // some goals hold because their negation must fail
  };

  // Follows references from the only goal to the schema that they name.
  Result<void> find_whole(const Goals& goals);
  Result<void> finish_unevaluated(Branch& branch);
  // Notes who says something, for error messages.
  static void speaks(Facts& facts, const Json& schema);
  // Goals that must fail come last: the goals that hold show how these can fail.
  static void after_others(Branch& branch, const Goal& goal);
  Result<void> take(Branch& branch, const Goal& goal);
  Result<void> holds(Branch& branch, const Json& schema);
  Result<void> keyword_holds(Branch& branch, const Json& schema, std::string_view keyword, const Json& value);
  // False: another kind of keyword.
  Result<bool> scalar_holds(Facts& facts, const Json& schema, std::string_view keyword, const Json& value);
  Result<bool> array_holds(Facts& facts, const Json& schema, std::string_view keyword, const Json& value);
  Result<bool> object_holds(Facts& facts, const Json& schema, std::string_view keyword, const Json& value);
  Result<void> one_of_values(Facts& facts, const Json& schema, std::string_view keyword, const Json& value);
  Result<bool> at_least(std::uint32_t& bound, const Json& schema, std::string_view keyword) const;
  Result<bool> at_most(std::uint32_t& bound, const Json& schema, std::string_view keyword) const;
  Result<void> combinator_holds(Branch& branch, const Json& schema, std::string_view keyword,
                                const Json& value);
  Result<void> choice_holds(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);
  Result<void> one_of(Branch& branch, const Json& schema, const Json& value);
  Result<void> fails(Branch& branch, const Json& schema);
  Result<bool> can_fail(const Facts& facts, const Json& schema, std::string_view keyword,
                        std::size_t index) const;
  Result<void> combinator_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                std::size_t index);
  Result<void> keyword_fails(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);

  // The branch continues with one of these lists of goals; a copy of it with each other one.
  Result<void> choose(Branch& branch, const Json& schema, std::string_view keyword,
                      std::vector<Goals> choices);

  // Whether `minimum` or `maximum` is made exclusive by a boolean beside it, as in draft-04.
  static bool is_exclusive(const Json& schema, std::string_view keyword);
  static void tighten(std::optional<NumberLimits::Bound>& bound, Decimal value, bool exclusive, bool lower);

  Result<std::uint32_t> count(const Json& schema, std::string_view keyword) const;
  Result<Decimal> divisor(const Json& schema) const;  // its multipleOf
  Result<Decimal> number(const Json& schema, std::string_view keyword) const;
  Result<unsigned> types(const Json& schema) const;

  SchemaReader& reader_;
  std::optional<Goal> death_;
  std::vector<Branch> open_;
  std::vector<const Json*> whole_;  // the schemas of which all others here are parts
  std::size_t branches_ = 1;
};

}  // namespace octavo::grammar
