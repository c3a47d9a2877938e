// Writes grammar rules for the Facts of a JSON Schema. Each distinct conjunction of subschemas becomes one
// rule. A queue contains the rules that are not written yet, so the code needs no recursion for recursive
// schemas.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "grammar/schema_reader.h"

namespace octavo::grammar {

class SchemaWriter {
 public:
  SchemaWriter(Grammar& grammar, SchemaReader& reader, const JsonOptions& options)
      : g_(grammar), reader_(reader), options_(options) {}

  // Writes a rule for the values that satisfy the goals, and all rules that it calls.
  Result<RuleId> write(const Goals& goals);
  RuleId any_object();
  // If the rule from write() matches no text, returns an error with the reason.
  Result<void> refuse_if_empty(RuleId root);

 private:
  struct Property {
    std::string_view name;
    RuleId value;
    bool required;
  };
  struct ObjectShape {
    std::vector<Property> properties;
    std::optional<ExprId> others;  // a member whose name is not in `properties`
    std::uint32_t members_min, members_max;
  };

  class MembersInOrder;
  struct NamePattern {
    const Json* schema;  // schema that has the keyword patternProperties
    const Json* value;
    const Automaton* names;
  };

  Result<RuleId> rule_for(Goals goals);
  Result<ExprId> values(const Goals& goals);
  Result<ExprId> values(const Facts& facts);
  Result<ExprId> listed(const Facts& facts);
  Result<ExprId> number(const Facts& facts, const std::vector<const Json*>& excluded);
  Result<ExprId> without_numbers(ExprId text, const std::vector<const Json*>& excluded, bool fractions);
  Result<ExprId> string(const Facts& facts);
  Result<std::optional<ExprId>> counted_string(const Facts& facts);
  Result<ExprId> string_text(const Facts& facts, const Automaton& contents);

  Result<ExprId> array(const Facts& facts);
  Result<ExprId> array_of_any(const Facts& facts);
  Result<ExprId> array_containing(const Facts& facts);
  Result<ExprId> array_of_different(const Facts& facts);
  // Returns all values that satisfy the goals, or nullopt if they cannot be listed.
  Result<std::optional<std::vector<const Json*>>> known_values(const Goals& goals);

  Result<ExprId> object(const Facts& facts);
  Result<bool> add_properties(const Facts& facts, ObjectShape& shape);
  Result<std::optional<ExprId>> other_members(const Facts& facts);
  Result<std::vector<NamePattern>> name_patterns(const Facts& facts);
  // Returns a rule for the unlisted names that match the patterns of `set` and no others (bit i of `set` is
  // patterns[i]), or nullopt if there is no such name. keys: result of other_keys().
  Result<std::optional<RuleId>> names_matching(const Facts& facts, const std::vector<NamePattern>& patterns,
                                               std::uint32_t set, const std::optional<Automaton>& keys);
  Result<std::optional<Automaton>> other_keys(const Facts& facts);
  Result<Automaton> key_contents(const Json* names);
  Result<ExprId> members(const Facts& facts, const ObjectShape& shape);
  Result<ExprId> members_in_order(const Facts& facts, const ObjectShape& shape);
  ExprId members_in_any_order(const ObjectShape& shape);
  // Returns an expression for the rest of the object after `count` listed members, including the closing
  // brace.
  std::optional<ExprId> rest_of_members(const ObjectShape& shape, std::uint32_t count);
  static std::string written_name(std::string_view name);
  // Returns an expression for the text after a name: the colon and the value.
  ExprId value_of(RuleId value);

  ExprId value_text(const Json& value);
  ExprId in_turn(const std::vector<ExprId>& parts);
  ExprId each_once(const std::vector<ExprId>& parts, std::uint32_t min, std::uint32_t max);
  ExprId space();
  ExprId colon();
  ExprId comma() { return g_.sequence({g_.literal(","), space()}); }
  RuleId separator();  // reads comma()
  ExprId quoted(ExprId content) { return g_.sequence({g_.literal("\""), content, g_.literal("\"")}); }
  RuleId any_string();
  RuleId any_value();
  ExprId array_of(ExprId item, std::uint32_t min, std::uint32_t max);

  Grammar& g_;
  const RuleId first_rule_ = static_cast<RuleId>(g_.rules.size());
  SchemaReader& reader_;
  const JsonOptions& options_;
  std::map<Goals, RuleId> rules_;
  // rules of strings, by contents and lengths
  std::map<std::tuple<const Automaton*, std::uint32_t, std::uint32_t>, RuleId> strings_;
  // rules of members, by name and by the rule of the value
  std::map<std::pair<std::string_view, RuleId>, RuleId> member_rules_;
  // rules for unlisted names, by the listed names that they exclude
  std::map<std::vector<std::string>, std::optional<RuleId>> other_names_;
  std::deque<std::pair<RuleId, const Goals*>> queue_;
  std::optional<ExprId> space_;
  std::optional<RuleId> separator_, string_, value_, object_;
};

}  // namespace octavo::grammar
