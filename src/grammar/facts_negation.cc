// Finds facts for goals that must fail: a schema, or one of its keywords.
#include <algorithm>
#include <iterator>

#include "grammar/facts_builder.h"
#include "grammar/limits.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

namespace {

// Keywords whose failure a grammar can express. types: types of values for which the keyword can fail.
struct Negatable {
  std::string_view keyword;
  unsigned types = kAnyType;
};
constexpr Negatable kNegatable[] = {{"type"},
                                    {"const"},
                                    {"enum"},
                                    {"allOf"},
                                    {"anyOf"},
                                    {"oneOf"},
                                    {"not"},
                                    {"if"},
                                    {"$ref"},
                                    {"$dynamicRef"},
                                    {"$recursiveRef"},
                                    {"minimum", kInteger | kFraction},
                                    {"maximum", kInteger | kFraction},
                                    {"exclusiveMinimum", kInteger | kFraction},
                                    {"exclusiveMaximum", kInteger | kFraction},
                                    {"multipleOf", kInteger | kFraction},
                                    {"minLength", kString},
                                    {"maxLength", kString},
                                    {"pattern", kString},
                                    {"items", kArray},
                                    {"contains", kArray},
                                    {"minItems", kArray},
                                    {"maxItems", kArray},
                                    {"minProperties", kObject},
                                    {"maxProperties", kObject},
                                    {"required", kObject},
                                    {"properties", kObject}};

bool is_negatable(const Json& schema, std::string_view keyword) {
  // If `items` is an array, or is beside prefixItems, it does not apply to all items.
  if (keyword == "items" && (schema.find("items")->is(Json::Kind::array) || schema.find("prefixItems")))
    return false;
  if (keyword == "contains" && (schema.find("minContains") || schema.find("maxContains"))) return false;
  return std::ranges::find(kNegatable, keyword, &Negatable::keyword) != std::end(kNegatable);
}

std::size_t parts_of(const Json& value, std::string_view keyword) {
  if (keyword == "required" || keyword == "allOf") return value.items.size();
  if (keyword == "properties") return value.members.size();
  return keyword == "if" ? 2 : 1;
}

}  // namespace

// Returns true if a value with these facts can fail the keyword, or element `index` of its value. Does not
// look into subschemas.
Result<bool> FactsBuilder::can_fail(const Facts& facts, const Json& schema, std::string_view keyword,
                                    std::size_t index) const {
  const unsigned failing = std::ranges::find(kNegatable, keyword, &Negatable::keyword)->types;
  if ((facts.types & failing) == 0) return false;
  const Json& value = *schema.find(keyword);
  if (keyword == "type") {
    TRY(const unsigned bits, types(schema));
    return (facts.types & ~bits) != 0;
  }
  if (keyword == "required")
    return std::ranges::find(facts.required, value.items[index].text) == facts.required.end();
  if (keyword != "properties") return true;
  const auto& [name, property] = value.members[index];
  if (property.is(Json::Kind::boolean) && property.boolean) return false;
  if (std::ranges::find(facts.forbidden, name) != facts.forbidden.end()) return false;
  TRY(const Goals goals, reader_.property_goals(facts, name));
  return std::ranges::none_of(goals, [&](const Goal& goal) {
    return goal.kind == Kind::holds && reader_.first_like(goal.schema) == reader_.first_like(&property);
  });
}

// Adds choices that require a member that the schema does not list. A choice can only name members that other
// schemas list. The result is exact if these other schemas allow no further members.
Result<bool> FactsBuilder::additional_fails(const Facts& facts, const Json& schema,
                                            std::vector<Goals>& choices) {
  const Json* listed = schema.find("properties");
  const auto outside = [&](std::string_view name) { return !listed || !reader_.member(*listed, name); };
  if (facts.types == kObject && std::ranges::any_of(facts.required, outside)) {
    // A required member is not in `properties`, so the keyword already fails. The choice needs no goal.
    choices.emplace_back();
    return true;
  }
  bool closed = false;
  for (const Json* other : facts.objects) {
    const Json *names = other->find("properties"), *rest = other->find("additionalProperties");
    closed = closed ||
             (rest && rest->is(Json::Kind::boolean) && !rest->boolean && !other->find("patternProperties"));
    if (!names) continue;
    TRY_VOID(reader_.work(names->members.size() * (1 + facts.forbidden.size() / 32), &schema,
                          "additionalProperties"));
    for (const auto& [name, value] : names->members) {
      // There are too many choices; fails() then uses only one of them.
      if (choices.size() > kAlternativesMax) break;
      Goals choice{{&schema, Kind::has_property, name}};
      if (outside(name) && std::ranges::find(facts.forbidden, name) == facts.forbidden.end() &&
          std::ranges::find(choices, choice) == choices.end())
        choices.push_back(std::move(choice));
    }
  }
  return closed;
}

// Requires that at least one keyword of the schema fails. Uses only keywords whose failure a grammar can
// express. So some valid values may be missing, but no invalid ones are added.
Result<void> FactsBuilder::fails(Branch& branch, const Json& schema) {
  TRY_VOID(reader_.check(&schema));
  speaks(branch.facts, schema);
  if (schema.is(Json::Kind::boolean)) {
    branch.dead = schema.boolean;
    return {};
  }
  std::vector<Goals> choices;
  bool negatable = false;
  std::optional<std::string_view> left_out;
  for (const auto& [keyword, value] : schema.members) {
    if (!reader_.counts(schema, keyword)) continue;
    if (keyword.starts_with("exclusive") && value.is(Json::Kind::boolean)) continue;
    if (keyword == "format" && !is_enforced_format(value.text)) continue;
    if (keyword == "uniqueItems" && !value.boolean) continue;
    if (keyword == "additionalProperties" && value.is(Json::Kind::boolean) &&
        !schema.find("patternProperties")) {
      if (value.boolean || (branch.facts.types & kObject) == 0) continue;
      TRY(const bool exact, additional_fails(branch.facts, schema, choices));
      if (!choices.empty() && choices.back().empty()) return {};  // the schema always fails
      if (!exact) left_out = keyword;
      negatable = negatable || exact || !choices.empty();
      continue;
    }
    if (!is_negatable(schema, keyword)) {
      left_out = keyword;
      continue;
    }
    negatable = true;
    for (std::size_t i = 0; i < parts_of(value, keyword); ++i) {
      TRY(const bool possible, can_fail(branch.facts, schema, keyword, i));
      if (possible) choices.push_back({{&schema, Kind::keyword_fails, keyword, i}});
    }
  }
  if (left_out && !negatable)
    return reader_.refuse(
        &schema, *left_out,
        "cannot be negated by 'not', 'oneOf' or 'if'; remove it, or add 'required' or 'type' to its schema");
  // With too many choices, uses only one: a missing required member, if possible, because it needs the fewest
  // facts.
  if (branches_ + choices.size() > kAlternativesMax / 2 && choices.size() > 1) {
    const auto missing =
        std::ranges::find_if(choices, [](const Goals& goals) { return goals[0].keyword == "required"; });
    choices = {missing != choices.end() ? *missing : choices.front()};
    left_out = choices[0][0].keyword;
  }
  reader_.narrowed_ = reader_.narrowed_ || left_out;
  TRY_VOID(reader_.work(1 + schema.members.size(), &schema, ""));
  return choose(branch, schema, "not", std::move(choices));
}

Result<void> FactsBuilder::keyword_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                         std::size_t index) {
  Facts& facts = branch.facts;
  const Json& value = *schema.find(keyword);
  const unsigned failing = std::ranges::find(kNegatable, keyword, &Negatable::keyword)->types;
  if (failing != kAnyType) {
    facts.types &= failing;
    return limit_fails(branch, schema, keyword, index);
  }
  if (keyword == "type") {
    TRY(const unsigned bits, types(schema));
    facts.types &= ~bits;
  } else if (keyword == "const") {
    facts.excluded.push_back(&value);
  } else if (keyword == "enum") {
    for (const Json& item : value.items) facts.excluded.push_back(&item);
  } else {
    return combinator_fails(branch, schema, keyword, index);
  }
  return {};
}

// Handles limits that apply only to values of certain types.
Result<void> FactsBuilder::limit_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                       std::size_t index) {
  Facts& facts = branch.facts;
  const Json& value = *schema.find(keyword);
  if (keyword == "minLength") return is_below(branch, facts.length.max, schema, keyword);
  if (keyword == "maxLength") return is_above(facts.length.min, schema, keyword);
  if (keyword == "minItems") return is_below(branch, facts.item_count.max, schema, keyword);
  if (keyword == "maxItems") return is_above(facts.item_count.min, schema, keyword);
  if (keyword == "minProperties") return is_below(branch, facts.property_count.max, schema, keyword);
  if (keyword == "maxProperties") return is_above(facts.property_count.min, schema, keyword);
  if (keyword == "multipleOf") {
    TRY(Decimal d, divisor(schema));
    facts.number.non_multiples.push_back(std::move(d));
    facts.stated.emplace_back(keyword, &schema);
  } else if (keyword == "pattern") {
    facts.patterns.push_back({&schema, true});
  } else if (keyword == "items") {
    facts.contains.push_back({{&value, Kind::fails}});
  } else if (keyword == "contains") {
    facts.contains.push_back({.goal = {&value}, .min = 0, .max = 0});
  } else if (keyword == "required") {
    facts.forbidden.push_back(value.items[index].text);
  } else if (keyword == "properties") {
    const auto& [name, property] = value.members[index];
    facts.required.push_back(name);
    facts.properties.emplace_back(name, Goal{&property, Kind::fails});
  } else {
    TRY(Decimal d, number(schema, keyword));
    const bool lower = keyword == "maximum" || keyword == "exclusiveMaximum";
    const bool exclusive = !keyword.starts_with("exclusive") && !is_exclusive(schema, keyword);
    tighten(lower ? facts.number.min : facts.number.max, std::move(d), exclusive, lower);
  }
  return {};
}

Result<void> FactsBuilder::is_below(Branch& branch, std::uint32_t& max, const Json& schema,
                                    std::string_view keyword) const {
  TRY(const std::uint32_t n, count(schema, keyword));
  if (n == 0)
    branch.dead = true;
  else
    max = std::min(max, n - 1);
  return {};
}

Result<void> FactsBuilder::is_above(std::uint32_t& min, const Json& schema, std::string_view keyword) const {
  TRY(const std::uint32_t n, count(schema, keyword));
  min = std::max(min, n + 1);
  return {};
}

Result<void> FactsBuilder::combinator_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                            std::size_t index) {
  const Json& value = *schema.find(keyword);
  if (keyword == "allOf") {
    branch.todo.push_back({&value.items[index], Kind::fails});
  } else if (keyword == "anyOf" || keyword == "oneOf") {
    // A oneOf also fails for values for which two of its schemas hold. The branch leaves out these values.
    reader_.narrowed_ = reader_.narrowed_ || keyword == "oneOf";
    for (const Json& part : value.items) branch.todo.push_back({&part, Kind::fails});
  } else if (keyword == "not") {
    branch.doubly_negated = true;
    branch.todo.push_back({&value});
  } else if (is_reference(keyword)) {
    TRY(const Json* target, reader_.resolve(&schema, keyword));
    branch.todo.push_back({target, Kind::fails});
  } else if (keyword == "if") {
    branch.doubly_negated = true;
    branch.todo.push_back({&value, index == 0 ? Kind::holds : Kind::fails});
    const Json* part = schema.find(index == 0 ? "then" : "else");
    if (part)
      branch.todo.push_back({part, Kind::fails});
    else
      branch.dead = true;
  }
  return {};
}

}  // namespace octavo::grammar
