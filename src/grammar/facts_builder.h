// Converts a list of goals to facts. A keyword with a choice creates branches.
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

  // Returns the goal that failed in the first branch without values.
  const std::optional<Goal>& death() const { return death_; }

 private:
  using Kind = Goal::Kind;
  struct Branch {
    Facts facts;
    Goals todo, done;
    bool dead = false;
    bool doubly_negated = false;  // some goals are double negations: they hold because their negation must
                                  // fail
  };

  // Follows references from a single goal to the schema that they refer to.
  Result<void> find_whole(const Goals& goals);
  // Handles unevaluatedProperties or unevaluatedItems with the value `true` in another schema.
  void evaluates_all(Facts& facts, std::string_view keyword);
  // Returns the schema of items that no schema of the branch evaluates.
  Json unevaluated_item(const Branch& branch) const;
  Result<void> finish_unevaluated(Branch& branch);
  // Records the schemas that contribute facts, for error messages.
  static void speaks(Facts& facts, const Json& schema);
  // Adds a goal that must fail after all others, because the others show how it can fail.
  static void after_others(Branch& branch, const Goal& goal);
  Result<void> take(Branch& branch, const Goal& goal);
  Result<void> holds(Branch& branch, const Json& schema);
  Result<void> keyword_holds(Branch& branch, const Json& schema, std::string_view keyword, const Json& value);
  // Handles keywords of scalars. Returns false if the keyword is not one of them.
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
  // Adds the ways in which `additionalProperties: false` can fail. Returns false if there are others that a
  // grammar cannot express.
  Result<bool> additional_fails(const Facts& facts, const Json& schema, std::vector<Goals>& choices);
  Result<bool> can_fail(const Facts& facts, const Json& schema, std::string_view keyword,
                        std::size_t index) const;
  Result<void> combinator_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                std::size_t index);
  Result<void> keyword_fails(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);
  Result<void> limit_fails(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);
  // Requires a number below a minimum, or above a maximum.
  Result<void> is_below(Branch& branch, std::uint32_t& max, const Json& schema,
                        std::string_view keyword) const;
  Result<void> is_above(std::uint32_t& min, const Json& schema, std::string_view keyword) const;

  // Continues the branch with the first list of goals, and a copy of the branch with each of the others.
  Result<void> choose(Branch& branch, const Json& schema, std::string_view keyword,
                      std::vector<Goals> choices);

  // Returns whether a boolean makes `minimum` or `maximum` exclusive, as in draft-04.
  static bool is_exclusive(const Json& schema, std::string_view keyword);
  static void tighten(std::optional<NumberLimits::Bound>& bound, Decimal value, bool exclusive, bool lower);

  Result<std::uint32_t> count(const Json& schema, std::string_view keyword) const;
  Result<Decimal> divisor(const Json& schema) const;  // returns the value of multipleOf
  Result<Decimal> number(const Json& schema, std::string_view keyword) const;
  Result<unsigned> types(const Json& schema) const;

  SchemaReader& reader_;
  std::optional<Goal> death_;
  std::vector<Branch> open_;
  std::vector<const Json*> whole_;  // schemas that contain all schemas of the goals
  std::size_t branches_ = 1;
};

}  // namespace octavo::grammar
