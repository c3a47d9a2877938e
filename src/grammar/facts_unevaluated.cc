// Facts of unevaluatedProperties and unevaluatedItems.
#include <algorithm>

#include "grammar/facts_builder.h"

namespace octavo::grammar {

Result<void> FactsBuilder::find_whole(const Goals& goals) {
  if (goals.size() != 1 || goals[0].kind != Kind::holds) return {};
  for (const Json* schema = goals[0].schema;;) {
    TRY_VOID(reader_.check(schema));  // checks for loops of references
    whole_.push_back(schema);
    const bool refers = schema->find("$ref") && std::ranges::all_of(schema->members, [&](const auto& member) {
                          return member.first == "$ref" || !reader_.counts(*schema, member.first);
                        });
    if (!refers) return {};
    TRY(schema, reader_.resolve(schema, "$ref"));
  }
}

// Generates a schema for the unevaluated values. The schemas that hold in this branch evaluate some values.
// Another branch of an anyOf, or `contains`, may also hold and evaluate more; such values are omitted.
// Schemas in a negation evaluate nothing.
Result<void> FactsBuilder::finish_unevaluated(Branch& branch) {
  Facts& facts = branch.facts;
  for (const auto& [schema, keyword] : {std::pair(facts.unevaluated.properties, "unevaluatedProperties"),
                                        std::pair(facts.unevaluated.items, "unevaluatedItems")})
    if (schema && branch.doubly_negated)
      return reader_.refuse(schema, keyword, "is not supported beside a 'not' of a 'not' or 'if'");
  const auto speaks = [](const std::vector<const Json*>& schemas, std::string_view keyword) {
    return std::ranges::any_of(schemas, [&](const Json* s) { return s->find(keyword) != nullptr; });
  };
  const auto object = [] {
    Json json;
    json.kind = Json::Kind::object;
    return json;
  };
  Json yes;
  yes.kind = Json::Kind::boolean;
  yes.boolean = true;
  const bool any_of = std::ranges::any_of(
      branch.done, [](const Goal& g) { return g.kind == Kind::keyword_holds && g.keyword == "anyOf"; });
  if (facts.unevaluated.properties && !speaks(facts.objects, "additionalProperties")) {
    Json rest = object();
    for (const std::string_view keyword : {"properties", "patternProperties"}) {
      Json evaluated = object();
      for (const Json* schema : facts.objects)
        if (const Json* listed = schema->find(keyword))
          for (const auto& [name, value] : listed->members)
            if (!evaluated.find(name)) evaluated.members.emplace_back(name, yes);
      if (!evaluated.members.empty()) rest.members.emplace_back(keyword, std::move(evaluated));
    }
    rest.members.emplace_back("additionalProperties",
                              *facts.unevaluated.properties->find("unevaluatedProperties"));
    facts.objects.push_back(reader_.made(std::move(rest)));
    reader_.narrowed_ = reader_.narrowed_ || any_of;
  }
  // If `items` is a list (up to 2019-09), additionalItems applies to the items after it.
  const bool all_items = std::ranges::any_of(facts.arrays, [](const Json* s) {
    const Json* items = s->find("items");
    return items && (!items->is(Json::Kind::array) || s->find("additionalItems"));
  });
  if (facts.unevaluated.items && !all_items) {
    Json rest = object(), prefix;
    prefix.kind = Json::Kind::array;
    prefix.items.resize(reader_.prefix_size(facts), yes);
    rest.members.emplace_back("prefixItems", std::move(prefix));
    rest.members.emplace_back("items", *facts.unevaluated.items->find("unevaluatedItems"));
    facts.arrays.push_back(reader_.made(std::move(rest)));
    reader_.narrowed_ = reader_.narrowed_ || any_of || !facts.contains.empty();
  }
  return {};
}

}  // namespace octavo::grammar
