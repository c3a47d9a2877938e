// What follows when a schema, or a keyword of it, must not hold.
#include "grammar/facts_builder.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

Result<void> FactsBuilder::fails(Branch& branch, const Json& schema) {
  TRY_VOID(reader_.check(&schema));
  speaks(branch.facts, schema);
  if (schema.is(Json::Kind::boolean)) {
    branch.dead = schema.boolean;
    return {};
  }
  std::vector<Goals> choices;
  const auto add = [&](std::string_view keyword, std::size_t index = 0) {
    choices.push_back({{&schema, Kind::keyword_fails, keyword, index}});
  };
  for (const auto& [keyword, value] : schema.members) {
    if (!reader_.counts(schema, keyword)) continue;
    if (keyword.starts_with("exclusive") && value.is(Json::Kind::boolean)) continue;
    if (keyword == "format" && !is_enforced_format(value.text)) continue;
    if (keyword == "required" || keyword == "allOf") {
      for (std::size_t i = 0; i < value.items.size(); ++i) add(keyword, i);
    } else if (keyword == "properties") {
      for (std::size_t i = 0; i < value.members.size(); ++i) add(keyword, i);
    } else if (keyword == "if") {
      add(keyword, 0);
      add(keyword, 1);
    } else {
      add(keyword);
    }
  }
  return choose(branch, schema, "not", std::move(choices));
}

Result<void> FactsBuilder::keyword_fails(Branch& branch, const Json& schema, std::string_view keyword,
                                         std::size_t index) {
  Facts& facts = branch.facts;
  const Json& value = *schema.find(keyword);
  const auto below = [&](unsigned type, std::uint32_t& max) -> Result<void> {
    TRY(const std::uint32_t n, count(schema, keyword));
    facts.types &= type;
    if (n == 0)
      branch.dead = true;
    else
      max = std::min(max, n - 1);
    return {};
  };
  const auto above = [&](unsigned type, std::uint32_t& min) -> Result<void> {
    TRY(const std::uint32_t n, count(schema, keyword));
    facts.types &= type;
    min = std::max(min, n + 1);
    return {};
  };
  const auto beyond = [&](bool lower, bool exclusive) -> Result<void> {
    TRY(Decimal d, number(schema, keyword));
    facts.types &= kInteger | kFraction;
    tighten(lower ? facts.number.min : facts.number.max, std::move(d), exclusive, lower);
    return {};
  };
  if (keyword == "type") {
    TRY(const unsigned bits, types(schema));
    facts.types &= ~bits;
  } else if (keyword == "const") {
    facts.excluded.push_back(&value);
  } else if (keyword == "enum") {
    for (const Json& item : value.items) facts.excluded.push_back(&item);
  } else if (keyword == "minimum" || keyword == "maximum") {
    return beyond(keyword == "maximum", !is_exclusive(schema, keyword));
  } else if (keyword == "exclusiveMinimum" || keyword == "exclusiveMaximum") {
    return beyond(keyword == "exclusiveMaximum", false);
  } else if (keyword == "minLength") {
    return below(kString, facts.length_max);
  } else if (keyword == "maxLength") {
    return above(kString, facts.length_min);
  } else if (keyword == "pattern") {
    facts.types &= kString;
    facts.patterns.push_back({&schema, true});
  } else if (keyword == "minItems") {
    return below(kArray, facts.items_max);
  } else if (keyword == "maxItems") {
    return above(kArray, facts.items_min);
  } else if (keyword == "minProperties") {
    return below(kObject, facts.properties_max);
  } else if (keyword == "maxProperties") {
    return above(kObject, facts.properties_min);
  } else if (keyword == "required") {
    facts.types &= kObject;
    facts.forbidden.push_back(value.items[index].text);
  } else if (keyword == "properties") {
    const auto& [name, property] = value.members[index];
    facts.types &= kObject;
    facts.required.push_back(name);
    facts.properties.emplace_back(name, Goal{&property, Kind::fails});
  } else if (keyword == "allOf") {
    branch.todo.push_back({&value.items[index], Kind::fails});
  } else if (keyword == "anyOf") {
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
  } else {
    return reader_.refuse(&schema, keyword, "cannot be negated (by 'not', 'oneOf' or 'if')");
  }
  return {};
}

}  // namespace octavo::grammar
