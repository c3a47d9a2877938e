// Converts goals (conditions on a value) to facts, which are plain conjunctions without combinators. A
// keyword that allows a choice, such as anyOf, splits the current branch. SchemaReader uses this class.
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

  // Returns the goal that made the first dead branch dead. A branch is dead if no value satisfies it.
  const std::optional<Goal>& death() const { return death_; }

 private:
  using Kind = Goal::Kind;
  struct Branch {
    Facts facts;
    Goals todo, done;
    bool dead = false;
    // true: some goals of the branch must hold only because a schema inside a `not` must fail
    bool doubly_negated = false;
  };

  // Fills whole_. If there is only one goal, follows its references.
  Result<void> find_whole(const Goals& goals);
  // Handles unevaluatedProperties or unevaluatedItems in a subschema if its value is `true`.
  void evaluates_all(Facts& facts, std::string_view keyword);
  // Returns the schema that applies to items that no schema of the branch evaluates.
  Json unevaluated_item(const Branch& branch) const;
  Result<void> finish_unevaluated(Branch& branch);
  // Sets Facts::about to the schema unless it is already set to a schema without $ref.
  static void speaks(Facts& facts, const Json& schema);
  // Adds a schema that must fail. It is processed after all other goals, because they restrict how it can
  // fail.
  static void after_others(Branch& branch, const Goal& goal);
  Result<void> take(Branch& branch, const Goal& goal);
  Result<void> holds(Branch& branch, const Json& schema);
  Result<void> keyword_holds(Branch& branch, const Json& schema, std::string_view keyword, const Json& value);
  // Handles keywords for scalars. Returns false for other keywords.
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
  // Adds the ways in which `additionalProperties: false` can fail. Returns false if it can also fail in
  // ways that a grammar cannot express.
  Result<bool> additional_fails(const Facts& facts, const Json& schema, std::vector<Goals>& choices);
  Result<bool> can_fail(const Facts& facts, const Json& schema, std::string_view keyword,
                        std::size_t index) const;
  Result<void> combinator_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                std::size_t index);
  Result<void> keyword_fails(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);
  Result<void> limit_fails(Branch& branch, const Json& schema, std::string_view keyword, std::size_t index);
  // Requires a value below a minimum or above a maximum.
  Result<void> is_below(Branch& branch, std::uint32_t& max, const Json& schema,
                        std::string_view keyword) const;
  Result<void> is_above(std::uint32_t& min, const Json& schema, std::string_view keyword) const;

  // choices: alternative lists of goals. The branch continues with the first list; each other list gets a
  // copy of the branch.
  Result<void> choose(Branch& branch, const Json& schema, std::string_view keyword,
                      std::vector<Goals> choices);

  // Returns true if a boolean exclusiveMinimum or exclusiveMaximum (draft-04) makes the limit exclusive.
  static bool is_exclusive(const Json& schema, std::string_view keyword);
  static void tighten(std::optional<NumberLimits::Bound>& bound, Decimal value, bool exclusive, bool lower);

  Result<std::uint32_t> count(const Json& schema, std::string_view keyword) const;
  Result<Decimal> divisor(const Json& schema) const;  // value of multipleOf
  Result<Decimal> number(const Json& schema, std::string_view keyword) const;
  Result<unsigned> types(const Json& schema) const;

  SchemaReader& reader_;
  std::optional<Goal> death_;
  std::vector<Branch> open_;
  // If there is only one goal: its schema. If that only contains a $ref, also the schema that it refers to,
  // and so on.
  std::vector<const Json*> whole_;
  std::size_t branches_ = 1;
};

}  // namespace octavo::grammar
