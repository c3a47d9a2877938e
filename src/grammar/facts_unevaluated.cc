// Facts for unevaluatedProperties and unevaluatedItems.
#include <algorithm>

#include "grammar/facts_builder.h"

namespace octavo::grammar {

namespace {

Json empty_object() {
  Json json;
  json.kind = Json::Kind::object;
  return json;
}

Json empty_array() {
  Json json;
  json.kind = Json::Kind::array;
  return json;
}

Json true_schema() {
  Json json;
  json.kind = Json::Kind::boolean;
  json.boolean = true;
  return json;
}

}  // namespace

Result<void> FactsBuilder::find_whole(const Goals& goals) {
  if (goals.size() != 1 || goals[0].kind != Kind::holds) return {};
  for (const Json* schema = goals[0].schema;;) {
    TRY_VOID(reader_.check(schema));  // detects loops of references
    whole_.push_back(schema);
    const bool refers = schema->find("$ref") && std::ranges::all_of(schema->members, [&](const auto& member) {
                          return member.first == "$ref" || !reader_.counts(*schema, member.first);
                        });
    if (!refers) return {};
    TRY(schema, reader_.resolve(schema, "$ref"));
  }
}

void FactsBuilder::evaluates_all(Facts& facts, std::string_view keyword) {
  const bool items = keyword == "unevaluatedItems";
  Json all = empty_object();
  all.members.emplace_back(items ? "items" : "additionalProperties", true_schema());
  (items ? facts.arrays : facts.objects).push_back(reader_.made(std::move(all)));
}

// Since draft 2020-12, `contains` evaluates the items that match it.
Json FactsBuilder::unevaluated_item(const Branch& branch) const {
  Json choices = empty_array();
  choices.items.push_back(*branch.facts.unevaluated.items->find("unevaluatedItems"));
  for (const Goal& goal : branch.done)
    if (const Json* matched = goal.kind == Kind::holds ? goal.schema->find("contains") : nullptr)
      choices.items.push_back(*matched);
  if (choices.items.size() == 1 || reader_.dialect_ < Dialect::draft2020) return std::move(choices.items[0]);
  Json item = empty_object();
  item.members.emplace_back("anyOf", std::move(choices));
  // made() returns the same schema for equal texts. So equal schemas have the same offset, and goals (which
  // are compared by offset) are equal.
  return *reader_.made(std::move(item));
}

// Makes a schema for the members and items that the schemas of this branch do not evaluate. If another
// subschema of an anyOf also holds and evaluates more of them, such values are left out. Schemas inside a
// negation evaluate nothing.
Result<void> FactsBuilder::finish_unevaluated(Branch& branch) {
  Facts& facts = branch.facts;
  for (const auto& [schema, keyword] : {std::pair(facts.unevaluated.properties, "unevaluatedProperties"),
                                        std::pair(facts.unevaluated.items, "unevaluatedItems")})
    if (schema && branch.doubly_negated)
      return reader_.refuse(schema, keyword,
                            "is not supported together with 'not' inside 'not' or 'if'; remove one of them");
  const auto speaks = [](const std::vector<const Json*>& schemas, std::string_view keyword) {
    return std::ranges::any_of(schemas, [&](const Json* s) { return s->find(keyword) != nullptr; });
  };
  const bool any_of = std::ranges::any_of(
      branch.done, [](const Goal& g) { return g.kind == Kind::keyword_holds && g.keyword == "anyOf"; });
  if (facts.unevaluated.properties && !speaks(facts.objects, "additionalProperties")) {
    Json rest = empty_object();
    for (const std::string_view keyword : {"properties", "patternProperties"}) {
      Json evaluated = empty_object();
      for (const Json* schema : facts.objects)
        if (const Json* listed = schema->find(keyword))
          for (const auto& [name, value] : listed->members)
            if (!evaluated.find(name)) evaluated.members.emplace_back(name, true_schema());
      if (!evaluated.members.empty()) rest.members.emplace_back(keyword, std::move(evaluated));
    }
    rest.members.emplace_back("additionalProperties",
                              *facts.unevaluated.properties->find("unevaluatedProperties"));
    facts.objects.push_back(reader_.made(std::move(rest)));
    reader_.narrowed_ = reader_.narrowed_ || any_of;
  }
  // Up to draft 2019-09, `items` may be an array. Then additionalItems applies to the items after those of
  // the array.
  const bool all_items = std::ranges::any_of(facts.arrays, [](const Json* s) {
    const Json* items = s->find("items");
    return items && (!items->is(Json::Kind::array) || s->find("additionalItems"));
  });
  if (facts.unevaluated.items && !all_items) {
    Json rest = empty_object(), prefix = empty_array();
    prefix.items.resize(reader_.prefix_size(facts), true_schema());
    rest.members.emplace_back("prefixItems", std::move(prefix));
    rest.members.emplace_back("items", unevaluated_item(branch));
    facts.arrays.push_back(reader_.made(std::move(rest)));
    reader_.narrowed_ = reader_.narrowed_ || any_of;
  }
  return {};
}

}  // namespace octavo::grammar
