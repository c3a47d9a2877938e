#include <algorithm>
#include <utility>

#include "grammar/json_string.h"
#include "grammar/limits.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

std::vector<std::string_view> listed_names(const Facts& facts) {
  std::vector<std::string_view> names;
  std::set<std::string_view> seen;
  const auto add = [&](std::string_view name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const Json* schema : facts.objects)
    if (const Json* properties = schema->find("properties"))
      for (const auto& member : properties->members) add(member.first);
  for (const auto& property : facts.properties) add(property.first);
  for (const std::string_view name : facts.required) add(name);
  return names;
}

// Returns the sorted names that unlisted members must not have: listed and forbidden names.
std::vector<std::string> taken_names(const Facts& facts) {
  std::set<std::string_view> names(facts.forbidden.begin(), facts.forbidden.end());
  for (const std::string_view name : listed_names(facts)) names.insert(name);
  return {names.begin(), names.end()};
}

}  // namespace

Result<ExprId> SchemaWriter::object(const Facts& facts) {
  if (facts.objects.empty() && facts.required.empty() && facts.forbidden.empty() &&
      facts.property_names.empty() && facts.property_count.min == 0 && facts.property_count.max == UINT32_MAX)
    return g_.call(any_object());
  ObjectShape shape{{}, {}, facts.property_count.min, facts.property_count.max};
  TRY(const bool possible, add_properties(facts, shape));
  if (!possible) return g_.nothing();
  TRY(shape.others, other_members(facts));
  // Removes bounds that always hold, so that members need not be counted.
  const auto required =
      static_cast<std::uint32_t>(std::ranges::count(shape.properties, true, &Property::required));
  if (shape.members_min <= required) shape.members_min = 0;
  if (!shape.others && shape.members_max >= shape.properties.size()) shape.members_max = kUnbounded;
  TRY(const ExprId members, members(facts, shape));
  return g_.sequence({g_.literal("{"), space(), members, g_.literal("}")});
}

Result<ExprId> SchemaWriter::members(const Facts& facts, const ObjectShape& shape) {
  const std::size_t kinds = shape.properties.size() + shape.others.has_value();
  const bool one_order = kinds < 2 || shape.members_max == 0;
  if (!options_.any_order || one_order || kinds > kAnyOrderMax) return members_in_order(facts, shape);
  return members_in_any_order(shape);
}

// Returns false if a required property cannot exist.
Result<bool> SchemaWriter::add_properties(const Facts& facts, ObjectShape& shape) {
  const std::set<std::string_view> all_required(facts.required.begin(), facts.required.end()),
      forbidden(facts.forbidden.begin(), facts.forbidden.end());
  for (const std::string_view name : listed_names(facts)) {
    const bool required = all_required.contains(name);
    TRY(Goals goals, reader_.property_goals(facts, name));
    bool possible = !SchemaReader::is_false(goals) && !forbidden.contains(name);
    Json key;
    key.kind = Json::Kind::string;
    key.text = name;
    for (const Json* names : facts.property_names) {
      TRY(const bool fits, reader_.satisfies(key, Goals{{names}}));
      possible = possible && fits;
    }
    if (!possible && required) return false;
    if (!possible) continue;
    TRY(const RuleId value, rule_for(std::move(goals)));
    shape.properties.push_back({name, value, required});
  }
  return true;
}

Result<std::vector<SchemaWriter::NamePattern>> SchemaWriter::name_patterns(const Facts& facts) {
  std::vector<NamePattern> patterns;
  for (const Json* schema : facts.objects) {
    const Json* by_pattern = schema->find("patternProperties");
    if (!by_pattern) continue;
    for (const auto& [key, value] : by_pattern->members) {
      TRY(const Automaton* names, reader_.pattern(key, schema, "patternProperties"));
      patterns.push_back({schema, &value, names});
    }
  }
  if (patterns.size() > static_cast<std::size_t>(kPatternGroupsMax))
    return reader_.refuse(patterns[0].schema, "patternProperties",
                          "{} patterns constrain one object, the limit is {}; join some with '|'",
                          patterns.size(), kPatternGroupsMax);
  return patterns;
}

namespace {

// Returns the goals for members whose names are not listed and match exactly these patterns.
template <class Patterns>
Goals goals_of_others(const Facts& facts, const Patterns& patterns, std::uint32_t set) {
  Goals goals;
  for (const Json* schema : facts.objects) {
    bool matched = false;
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if ((set >> i & 1) && patterns[i].schema == schema) {
        add_goal(goals, *patterns[i].value);
        matched = true;
      }
    if (const Json* additional = schema->find("additionalProperties"); additional && !matched)
      add_goal(goals, *additional);
  }
  return goals;
}

}  // namespace

// Returns an expression for one unlisted member. Each set of patterns that a name can match has separate
// goals.
Result<std::optional<ExprId>> SchemaWriter::other_members(const Facts& facts) {
  TRY(const std::vector<NamePattern> patterns, name_patterns(facts));
  const auto has_keyword = [&](std::string_view keyword) {
    return std::ranges::any_of(facts.objects, [&](const Json* schema) { return schema->find(keyword); });
  };
  const bool closed = options_.strict && !has_keyword("additionalProperties") &&
                      (has_keyword("properties") || has_keyword("patternProperties"));
  std::vector<ExprId> branches;
  std::optional<Automaton> keys;
  bool keys_known = false;
  for (std::uint32_t set = closed ? 1 : 0; set < 1u << patterns.size(); ++set) {
    Goals goals = goals_of_others(facts, patterns, set);
    if (SchemaReader::is_false(goals)) continue;
    // Alternatives of one schema often have the same listed names. They share one rule for the other names.
    std::optional<RuleId> own;
    std::optional<RuleId>* key = &own;
    if (patterns.empty() && facts.property_names.empty()) {
      std::vector<std::string> taken = taken_names(facts);
      TRY_VOID(reader_.work(taken.size(), facts.about, "additionalProperties"));
      key = &other_names_[std::move(taken)];
    }
    if (!*key) {
      if (!std::exchange(keys_known, true)) {
        TRY(keys, other_keys(facts));
      }
      TRY(*key, names_matching(facts, patterns, set, keys));
    }
    if (!*key) continue;
    TRY(const RuleId value, rule_for(std::move(goals)));
    branches.push_back(g_.sequence({g_.call(**key), value_of(value)}));
  }
  if (branches.empty()) return std::optional<ExprId>{};
  return std::optional(g_.choice(std::move(branches)));
}

Result<std::optional<RuleId>> SchemaWriter::names_matching(const Facts& facts,
                                                           const std::vector<NamePattern>& patterns,
                                                           std::uint32_t set,
                                                           const std::optional<Automaton>& keys) {
  if (!keys && patterns.empty()) return std::optional(any_string());
  std::optional<Automaton> names = keys;
  for (std::size_t i = 0; names && i < patterns.size(); ++i)
    names = combine(*names, *patterns[i].names, set >> i & 1 ? Combine::intersection : Combine::difference,
                    kDfaStatesMax);
  const std::string_view keyword = patterns.empty() ? "additionalProperties" : "patternProperties";
  TRY_VOID(reader_.work(2000 + (names ? 100 * names->states.size() : 0), facts.about, keyword));
  if (names && is_empty(*names)) return std::optional<RuleId>{};
  auto text = names ? spelled(*names) : std::nullopt;
  if (!text)
    return reader_.refuse(
        facts.about, keyword,
        "the names that are not listed need more than {} states; list fewer names, or shorter ones",
        kDfaStatesMax);
  return std::optional(g_.rule("", quoted(g_.leaf(*std::move(text)))));
}

// Returns an automaton for the contents of all unlisted names, or nullopt if names are not restricted at all.
Result<std::optional<Automaton>> SchemaWriter::other_keys(const Facts& facts) {
  std::vector<std::string> taken = taken_names(facts);
  const bool patterns =
      std::ranges::any_of(facts.objects, [](const Json* s) { return s->find("patternProperties"); });
  if (taken.empty() && facts.property_names.empty() && !patterns) return std::optional<Automaton>{};
  Grammar grammar;
  std::optional<Automaton> keys =
      regular_automaton(grammar, grammar.repeat(content_character(grammar), 0, kUnbounded), kDfaStatesMax);
  const std::size_t bytes = trie_bytes(taken);
  TRY_VOID(reader_.work(bytes, facts.about, "properties"));
  if (bytes > kListBytesMax)
    return reader_.refuse(
        facts.about, "properties",
        "the names have more than {} bytes after their common beginnings; list fewer or shorter names",
        kListBytesMax);
  if (!taken.empty())
    keys = combine(*keys, automaton_of(std::move(taken)), Combine::difference, kDfaStatesMax);
  for (const Json* names : facts.property_names) {
    TRY(const Automaton allowed, key_contents(names));
    if (keys) keys = combine(*keys, allowed, Combine::intersection, kDfaStatesMax);
  }
  if (!keys)
    return reader_.refuse(facts.about, "",
                          "the names of other members need more than {} states; use simpler patterns",
                          kDfaStatesMax);
  return keys;
}

// Returns an automaton for the contents that propertyNames allows.
Result<Automaton> SchemaWriter::key_contents(const Json* names) {
  TRY(const std::vector<Facts> alternatives, reader_.read(Goals{{names}}));
  Grammar grammar;
  std::vector<ExprId> branches;
  for (const Facts& facts : alternatives) {
    if ((facts.types & kString) == 0 || facts.length.min > facts.length.max) continue;
    if (facts.values) {
      Facts rest = facts;
      rest.values.reset();
      std::vector<std::string> texts;
      for (const Json* value : *facts.values) {
        TRY(const bool fits, reader_.satisfies(*value, rest));
        if (fits && value->is(Json::Kind::string)) texts.push_back(value->text);
      }
      branches.push_back(grammar.leaf(automaton_of(std::move(texts))));
      continue;
    }
    TRY(auto contents, reader_.contents_of_length(facts));
    branches.push_back(contents
                           ? grammar.leaf(*std::move(contents))
                           : grammar.repeat(content_character(grammar), facts.length.min, facts.length.max));
  }
  auto all = regular_automaton(grammar, grammar.choice(std::move(branches)), kPatternStatesMax);
  if (!all)
    return reader_.refuse(names, "", "these names need more than {} states; use simpler patterns",
                          kPatternStatesMax);
  return *std::move(all);
}

}  // namespace octavo::grammar
