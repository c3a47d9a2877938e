// Explains why no value satisfies a schema: the error names the keywords that exclude each other, and their
// positions.
#include <algorithm>

#include "grammar/dead_ends.h"
#include "grammar/facts_builder.h"
#include "grammar/schema_writer.h"

namespace octavo::grammar {

namespace {

// A keyword that the error names, and the schema that contains it. If several schemas have the keyword, this
// is the last schema whose value causes the error. If there is none, it is the last schema.
struct Statement {
  const Json* schema = nullptr;
  std::string_view keyword;
  explicit operator bool() const { return schema != nullptr; }
  std::string value() const { return shortened(to_text(*schema->find(keyword))); }
};

Statement statement_of(const Facts& facts, std::initializer_list<std::string_view> keywords) {
  for (auto it = facts.stated.rbegin(); it != facts.stated.rend(); ++it)
    if (std::ranges::find(keywords, it->first) != keywords.end()) return {it->second, it->first};
  return {};
}

Statement stated_bound(const Facts& facts, std::string_view keyword, const Decimal& value) {
  for (const auto& [name, schema] : facts.stated)
    if (name == keyword ||
        (name.starts_with("exclusive") && name.substr(9) == (keyword == "minimum" ? "Minimum" : "Maximum")))
      if (const auto number = Decimal::parse(schema->find(name)->text); number && *number == value)
        return {schema, name};
  return {};
}

Statement stated_count(const Facts& facts, std::string_view keyword, std::uint32_t value) {
  for (const auto& [name, schema] : facts.stated)
    if (name == keyword)
      if (const auto n = Decimal::parse(schema->find(name)->text); n && n->count() == value)
        return {schema, name};
  return {};
}

std::string keywords_of(const Facts& facts) {
  std::vector<std::string_view> names;
  for (const auto& [name, schema] : facts.stated)
    if (std::ranges::find(names, name) == names.end() && names.size() < 8) names.push_back(name);
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

}  // namespace

// Returns an error if a maximum is below its minimum.
std::optional<Error> SchemaReader::crossed(const Facts& facts, std::string_view thing) const {
  Statement least, most;
  if (thing == "number") {
    if (!facts.number.min || !facts.number.max) return std::nullopt;
    const auto& [low, low_open] = *facts.number.min;
    const auto& [high, high_open] = *facts.number.max;
    if (!(high < low) && !(high == low && (low_open || high_open))) return std::nullopt;
    least = stated_bound(facts, "minimum", low);
    most = stated_bound(facts, "maximum", high);
  } else {
    const bool string = thing == "string", array = thing == "array";
    const auto [low, high] = string  ? CountRange{facts.length.min, facts.length.max}
                             : array ? facts.item_count
                                     : facts.property_count;
    if (low <= high) return std::nullopt;
    const std::string_view what = string ? "Length" : array ? "Items" : "Properties";
    for (const auto& [name, schema] : facts.stated)
      if (name.substr(3) == what) {
        if (name.starts_with("min")) least = stated_count(facts, name, low);
        if (name.starts_with("max")) most = stated_count(facts, name, high);
      }
  }
  if (!least || !most) return std::nullopt;
  return refuse(most.schema, most.keyword, "{0} and '{2}' {3} at {4} exclude every {1}; change one of them",
                most.value(), thing, least.keyword, least.value(), path(least.schema, least.keyword))
      .error();
}

Result<Error> SchemaReader::no_listed_value(const Facts& facts) const {
  const Statement last = statement_of(facts, {"enum", "const"});
  for (const auto& [name, schema] : facts.stated)
    if (name == "enum" && schema->find(name)->items.empty())
      return refuse(schema, name, "lists no value: list at least one, or leave 'enum' out").error();
  if (facts.values->empty())
    for (const auto& [name, schema] : facts.stated)
      if ((name == "enum" || name == "const") && (schema != last.schema || name != last.keyword))
        return refuse(last.schema, last.keyword, "{} has no value that '{}' at {} allows: {}", last.value(),
                      name, path(schema, name), shortened(to_text(*schema->find(name))))
            .error();
  return refuse(last.schema, last.keyword, "{}: no value listed here satisfies all of {}", last.value(),
                keywords_of(facts))
      .error();
}

Result<std::optional<Error>> SchemaReader::missing_member(const Facts& facts) {
  for (const std::string_view name : facts.required) {
    const auto is_name = [&](const Json& item) { return item.text == name; };
    const auto by = std::ranges::find_if(facts.stated, [&](const auto& entry) {
      return entry.first == "required" && std::ranges::any_of(entry.second->find("required")->items, is_name);
    });
    const Json* required = by == facts.stated.end() ? facts.about : by->second;
    TRY(const Goals goals, property_goals(facts, name));
    if (is_false(goals)) {
      const auto excludes = [&](const auto& entry) {
        const Json* properties = entry.second->find("properties");
        const Json* others = entry.second->find(entry.first);
        return entry.first == "additionalProperties" && others->is(Json::Kind::boolean) && !others->boolean &&
               !(properties && properties->find(name));
      };
      const auto closed = std::ranges::find_if(facts.stated, excludes);
      if (closed != facts.stated.end())
        return refuse(required, "required",
                      "'{}' is required, but '{}' at {} does not allow it: add it to 'properties' there",
                      name, closed->first, path(closed->second, closed->first))
            .error();
      return refuse(required, "required",
                    "'{}' is required, but its schema in 'properties' is false; remove one of the two", name)
          .error();
    }
    Json key;
    key.kind = Json::Kind::string;
    key.text = name;
    for (const Json* names : facts.property_names) {
      TRY(const bool fits, satisfies(key, Goals{{names}}));
      if (!fits)
        return refuse(required, "required",
                      "'{}' is required, but 'propertyNames' at {} does not allow the name; allow it there",
                      name, path(names, ""))
            .error();
    }
  }
  return std::optional<Error>{};
}

Result<Error> SchemaReader::contradiction(const Facts& facts) {
  if (facts.values) return no_listed_value(facts);
  constexpr std::pair<unsigned, std::string_view> kThings[] = {
      {kInteger | kFraction, "number"}, {kString, "string"}, {kArray, "array"}, {kObject, "object"}};
  for (const auto& [type, thing] : kThings)
    if (facts.types & type)
      if (auto error = crossed(facts, thing)) return *std::move(error);
  if (facts.types & kObject) {
    TRY(auto missing, missing_member(facts));
    if (missing) return *std::move(missing);
  }
  const auto none = [&](Statement by, std::string_view thing) {
    return refuse(by ? by.schema : facts.about, by.keyword,
                  "no {} satisfies all of {}; leave one of them out", thing, keywords_of(facts))
        .error();
  };
  if (facts.types & (kInteger | kFraction))
    return none(
        statement_of(facts, {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}),
        facts.types & kFraction ? "number" : "integer");
  if (facts.types & kString)
    return none(statement_of(facts, {"pattern", "format", "maxLength", "minLength"}), "string");
  if (facts.types & kArray)
    return none(statement_of(facts, {"contains", "minItems", "uniqueItems", "items", "prefixItems"}),
                "array");
  if (facts.types & kObject)
    return none(statement_of(facts, {"minProperties", "maxProperties", "required", "properties"}), "object");
  return none({}, "value");
}

// Returns the error for goals that no value can satisfy.
Result<Error> SchemaReader::explain(const Goals& goals) {
  FactsBuilder builder(*this);
  TRY(const std::vector<Facts> alternatives, builder.build(goals));
  if (!alternatives.empty()) return contradiction(alternatives.front());
  if (!builder.death())
    return refuse(goals.empty() ? &document_ : goals[0].schema, "", "no value is valid; remove a keyword")
        .error();
  const Goal& goal = *builder.death();
  if (goal.kind != Goal::Kind::holds)
    return refuse(goal.schema, goal.keyword,
                  "'not', 'oneOf' or 'if' excludes all values of this schema, and no other values are left; "
                  "allow some")
        .error();
  if (goal.schema->is(Json::Kind::boolean))
    return refuse(goal.schema, "",
                  "the schema is false: no value is valid; replace it, or make the member that contains it "
                  "optional")
        .error();
  return refuse(goal.schema, goal.schema->find("type") ? "type" : "",
                "allows no type that the other schemas of the same value allow; change one of them")
      .error();
}

Result<void> SchemaWriter::refuse_if_empty(RuleId root) {
  const DeadEnds ends(g_, first_rule_);
  if (!ends.is_dead(root)) return {};
  const DeadEnds::Chain chain = ends.chain_from(root);
  const Goals* last = nullptr;
  for (const RuleId rule : chain.rules)
    for (const auto& [goals, of] : rules_)
      if (of == rule) last = &goals;
  if (chain.endless)
    return reader_.refuse(
        last->front().schema, "",
        "each value must contain another value of the same schema, without end; make the member "
        "optional, or allow another type");
  TRY(Error why, reader_.explain(*last));
  return std::unexpected(std::move(why));
}

}  // namespace octavo::grammar
