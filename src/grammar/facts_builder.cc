#include "grammar/facts_builder.h"

#include <algorithm>
#include <ranges>

#include "grammar/limits.h"
#include "grammar/schema_keywords.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

namespace {

unsigned type_of(std::string_view name) {
  if (name == "null") return kNull;
  if (name == "boolean") return kBoolean;
  if (name == "integer") return kInteger;
  if (name == "number") return kInteger | kFraction;
  if (name == "string") return kString;
  if (name == "array") return kArray;
  if (name == "object") return kObject;
  return 0;
}

bool is_dependency(std::string_view keyword) {
  return keyword == "dependentRequired" || keyword == "dependentSchemas" || keyword == "dependencies";
}

}  // namespace

bool FactsBuilder::is_exclusive(const Json& schema, std::string_view keyword) {
  const Json* beside = schema.find(keyword == "minimum" ? "exclusiveMinimum" : "exclusiveMaximum");
  return beside && beside->boolean;
}

void FactsBuilder::tighten(std::optional<NumberLimits::Bound>& bound, Decimal value, bool exclusive,
                           bool lower) {
  if (bound) {
    const auto order = lower ? value <=> bound->value : bound->value <=> value;
    if (order < 0 || (order == 0 && !exclusive)) return;
  }
  bound = NumberLimits::Bound{std::move(value), exclusive};
}

Result<std::vector<Facts>> FactsBuilder::build(const Goals& goals) {
  TRY_VOID(find_whole(goals));
  // Goals are taken from the end of the list, so the list is reversed.
  open_.push_back({{}, Goals(goals.rbegin(), goals.rend()), {}});
  std::vector<Facts> out;
  while (!open_.empty()) {
    Branch branch = std::move(open_.back());
    open_.pop_back();
    while (!branch.todo.empty() && !branch.dead) {
      const Goal goal = branch.todo.back();
      branch.todo.pop_back();
      if (std::ranges::find(branch.done, goal) != branch.done.end()) continue;
      branch.done.push_back(goal);
      TRY_VOID(take(branch, goal));
      if (!death_ && (branch.dead || branch.facts.types == 0)) death_ = goal;
    }
    if (branch.dead || branch.facts.types == 0) continue;
    TRY_VOID(finish_unevaluated(branch));
    out.push_back(std::move(branch.facts));
  }
  std::ranges::reverse(out);
  return out;
}

Result<void> FactsBuilder::take(Branch& branch, const Goal& goal) {
  Facts& facts = branch.facts;
  switch (goal.kind) {
    case Kind::holds:
      return holds(branch, *goal.schema);
    case Kind::fails:
      return fails(branch, *goal.schema);
    case Kind::keyword_holds:
      return choice_holds(branch, *goal.schema, goal.keyword, goal.index);
    case Kind::keyword_fails:
      return keyword_fails(branch, *goal.schema, goal.keyword, goal.index);
    case Kind::lacks_property:
      facts.forbidden.push_back(goal.keyword);
      return {};
    case Kind::has_property:
      facts.types &= kObject;
      facts.required.push_back(goal.keyword);
      return {};
  }
  return {};
}

void FactsBuilder::after_others(Branch& branch, const Goal& goal) {
  branch.todo.insert(branch.todo.begin(), goal);
}

void FactsBuilder::speaks(Facts& facts, const Json& schema) {
  if (!facts.about || facts.about->find("$ref")) facts.about = &schema;
}

Result<void> FactsBuilder::holds(Branch& branch, const Json& schema) {
  TRY_VOID(reader_.work(1 + schema.members.size(), &schema, ""));
  speaks(branch.facts, schema);
  TRY_VOID(reader_.check(&schema));
  if (schema.is(Json::Kind::boolean)) {
    branch.dead = !schema.boolean;
    return {};
  }
  for (const auto& [keyword, value] : schema.members) TRY_VOID(keyword_holds(branch, schema, keyword, value));
  return {};
}

Result<void> FactsBuilder::keyword_holds(Branch& branch, const Json& schema, std::string_view keyword,
                                         const Json& value) {
  if (!reader_.counts(schema, keyword)) return {};
  for (const auto part :
       {&FactsBuilder::scalar_holds, &FactsBuilder::array_holds, &FactsBuilder::object_holds}) {
    TRY(const bool known, (this->*part)(branch.facts, schema, keyword, value));
    if (known) {
      branch.facts.stated.emplace_back(keyword, &schema);
      return {};
    }
  }
  return combinator_holds(branch, schema, keyword, value);
}

Result<bool> FactsBuilder::at_least(std::uint32_t& bound, const Json& schema,
                                    std::string_view keyword) const {
  TRY(const std::uint32_t n, count(schema, keyword));
  bound = std::max(bound, n);
  return true;
}

Result<bool> FactsBuilder::at_most(std::uint32_t& bound, const Json& schema, std::string_view keyword) const {
  TRY(const std::uint32_t n, count(schema, keyword));
  bound = std::min(bound, n);
  return true;
}

Result<void> FactsBuilder::one_of_values(Facts& facts, const Json& schema, std::string_view keyword,
                                         const Json& value) {
  std::vector<const Json*> allowed;
  if (keyword == "const") allowed.push_back(&value);
  for (const Json& item : value.items)
    if (keyword == "enum") allowed.push_back(&item);
  TRY_VOID(
      reader_.work(allowed.size() / 8 * (1 + (facts.values ? facts.values->size() : 0)), &schema, keyword));
  if (facts.values)
    std::erase_if(*facts.values, [&](const Json* v) {
      return std::ranges::none_of(allowed, [&](const Json* a) { return equal(*a, *v); });
    });
  else
    facts.values = std::move(allowed);
  return {};
}

Result<bool> FactsBuilder::scalar_holds(Facts& facts, const Json& schema, std::string_view keyword,
                                        const Json& value) {
  const auto limit = [&](bool lower, bool exclusive) -> Result<bool> {
    TRY(Decimal d, number(schema, keyword));
    if (value.text.find_first_of("eE") != std::string::npos) facts.number.exponents = true;
    tighten(lower ? facts.number.min : facts.number.max, std::move(d), exclusive, lower);
    return true;
  };
  if (keyword == "type") {
    TRY(const unsigned bits, types(schema));
    facts.types &= bits;
  } else if (keyword == "enum" || keyword == "const") {
    TRY_VOID(one_of_values(facts, schema, keyword, value));
  } else if (keyword == "minimum" || keyword == "maximum") {
    return limit(keyword == "minimum", is_exclusive(schema, keyword));
  } else if (keyword == "exclusiveMinimum" || keyword == "exclusiveMaximum") {
    if (!value.is(Json::Kind::boolean)) return limit(keyword == "exclusiveMinimum", true);
  } else if (keyword == "multipleOf") {
    TRY(Decimal d, divisor(schema));
    facts.number.multiples.push_back(std::move(d));
  } else if (keyword == "minLength") {
    return at_least(facts.length.min, schema, keyword);
  } else if (keyword == "maxLength") {
    return at_most(facts.length.max, schema, keyword);
  } else if (keyword == "pattern") {
    facts.patterns.push_back({&schema, false});
  } else if (keyword == "format") {
    if (is_enforced_format(value.text)) facts.formats.push_back(value.text);
  } else {
    return false;
  }
  return true;
}

namespace {

void add_group(std::vector<const Json*>& groups, const Json& schema) {
  if (groups.empty() || groups.back() != &schema) groups.push_back(&schema);
}

}  // namespace

Result<bool> FactsBuilder::array_holds(Facts& facts, const Json& schema, std::string_view keyword,
                                       const Json& value) {
  if (keyword == "minItems") return at_least(facts.item_count.min, schema, keyword);
  if (keyword == "maxItems") return at_most(facts.item_count.max, schema, keyword);
  if (keyword == "uniqueItems") {
    if (value.boolean) facts.unique_items = &schema;
  } else if (keyword == "items" || keyword == "prefixItems") {
    add_group(facts.arrays, schema);
  } else if (keyword == "contains") {
    Facts::Contained contained{.goal = {&value}};
    const bool counted = reader_.dialect_ >= Dialect::draft2019;
    if (counted && schema.find("minContains")) {
      TRY(contained.min, count(schema, "minContains"));
    }
    if (counted && schema.find("maxContains")) {
      TRY(contained.max, count(schema, "maxContains"));
    }
    if (contained.min > 0 || contained.max != UINT32_MAX) facts.contains.push_back(contained);
  } else {
    return false;
  }
  return true;
}

Result<bool> FactsBuilder::object_holds(Facts& facts, const Json& schema, std::string_view keyword,
                                        const Json& value) {
  if (keyword == "minProperties") return at_least(facts.property_count.min, schema, keyword);
  if (keyword == "maxProperties") return at_most(facts.property_count.max, schema, keyword);
  if (keyword == "properties" || keyword == "patternProperties" || keyword == "additionalProperties") {
    add_group(facts.objects, schema);
  } else if (keyword == "required") {
    for (const Json& name : value.items) facts.required.push_back(name.text);
  } else if (keyword == "propertyNames") {
    facts.property_names.push_back(&value);
  } else {
    return false;
  }
  return true;
}

Result<void> FactsBuilder::combinator_holds(Branch& branch, const Json& schema, std::string_view keyword,
                                            const Json& value) {
  if (is_reference(keyword)) {
    TRY(const Json* target, reader_.resolve(&schema, keyword));
    branch.todo.push_back({target});
  } else if (keyword == "allOf") {
    // Schemas are taken from the end of the list, so the first schema is added last. Then its properties are
    // the first in the output.
    for (const Json& part : std::views::reverse(value.items)) branch.todo.push_back({&part});
  } else if (keyword == "not") {
    after_others(branch, {&value, Kind::fails});
  } else if (keyword == "anyOf" || keyword == "oneOf" || keyword == "if") {
    branch.todo.push_back({&schema, Kind::keyword_holds, keyword});
  } else if (is_dependency(keyword)) {
    for (std::size_t i = 0; i < value.members.size(); ++i)
      branch.todo.push_back({&schema, Kind::keyword_holds, keyword, i});
  } else if (keyword == "unevaluatedProperties" || keyword == "unevaluatedItems") {
    const bool whole = std::ranges::find(whole_, &schema) != whole_.end();
    if (value.is(Json::Kind::boolean) && value.boolean) {
      if (!whole) evaluates_all(branch.facts, keyword);
      return {};
    }
    if (!whole)
      return reader_.refuse(&schema, keyword,
                            "is not supported inside a schema that is a part of another one, such as a "
                            "branch of 'allOf'; move it to the outer schema");
    Facts& facts = branch.facts;
    (keyword == "unevaluatedItems" ? facts.unevaluated.items : facts.unevaluated.properties) = &schema;
  } else {
    return reader_.refuse(&schema, keyword, "is not supported; remove it");
  }
  return {};
}

Result<void> FactsBuilder::choice_holds(Branch& branch, const Json& schema, std::string_view keyword,
                                        std::size_t index) {
  const Json& value = *schema.find(keyword);
  if (keyword == "oneOf") return one_of(branch, schema, value);
  std::vector<Goals> choices;
  if (keyword == "anyOf") {
    for (const Json& part : value.items) choices.push_back({{&part}});
  } else if (keyword == "if") {
    Goals yes{{&value}}, no{{&value, Kind::fails}};
    const Json *then = schema.find("then"), *other = schema.find("else");
    if (!then && !other) return {};
    if (then) yes.push_back({then});
    if (other) no.push_back({other});
    choices = {std::move(yes), std::move(no)};
  } else {
    const auto& [name, needs] = value.members[index];
    Goals with{{&schema, Kind::has_property, name}};
    if (needs.is(Json::Kind::array))
      for (const Json& other : needs.items) with.push_back({&schema, Kind::has_property, other.text});
    else
      with.push_back({&needs});
    choices = {{{&schema, Kind::lacks_property, name}}, std::move(with)};
  }
  return choose(branch, schema, keyword, std::move(choices));
}

// For each i, adds one choice: subschema i holds and all other subschemas fail. A subschema that is disjoint
// from subschema i fails anyway, so it needs no `fails` goal.
Result<void> FactsBuilder::one_of(Branch& branch, const Json& schema, const Json& value) {
  const std::size_t n = value.items.size();
  if (n > kAlternativesMax)
    return reader_.refuse(&schema, "oneOf", "has {} branches, the limit is {}; use fewer", n,
                          kAlternativesMax);
  std::vector<std::vector<bool>> apart(n, std::vector<bool>(n, false));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      TRY(const bool disjoint, reader_.disjoint(Goals{{&value.items[i]}}, Goals{{&value.items[j]}}, 0));
      apart[i][j] = apart[j][i] = disjoint;
    }
  std::vector<Goals> choices;
  for (std::size_t i = 0; i < n; ++i) {
    Goals choice{{&value.items[i]}};
    for (std::size_t j = 0; j < n; ++j)
      if (j != i && !apart[i][j]) choice.push_back({&value.items[j], Kind::fails});
    choices.push_back(std::move(choice));
  }
  return choose(branch, schema, "oneOf", std::move(choices));
}

Result<void> FactsBuilder::choose(Branch& branch, const Json& schema, std::string_view keyword,
                                  std::vector<Goals> choices) {
  if (choices.empty()) {
    branch.dead = true;
    return {};
  }
  branches_ += choices.size() - 1;
  if (branches_ > kAlternativesMax)
    return reader_.refuse(&schema, keyword, "leads to more than {} combinations of alternatives; use fewer",
                          kAlternativesMax);
  const auto extend = [](Branch& to, const Goals& goals) {
    for (const Goal& goal : goals)
      if (goal.kind == Kind::fails)
        after_others(to, goal);
      else
        to.todo.push_back(goal);
  };
  for (std::size_t i = 0; i + 1 < choices.size(); ++i) extend(open_.emplace_back(branch), choices[i]);
  extend(branch, choices.back());
  return {};
}

// --- Values of keywords ---

Result<std::uint32_t> FactsBuilder::count(const Json& schema, std::string_view keyword) const {
  const Json& value = *schema.find(keyword);
  const auto decimal = value.is(Json::Kind::number) ? Decimal::parse(value.text) : std::nullopt;
  const auto n = decimal ? decimal->count() : std::nullopt;
  if (!n) return reader_.refuse(&schema, keyword, "must be a whole number from 0 to 4294967294");
  return *n;
}

Result<Decimal> FactsBuilder::divisor(const Json& schema) const {
  TRY(Decimal d, number(schema, "multipleOf"));
  if (d.negative || d.is_zero()) return reader_.refuse(&schema, "multipleOf", "must be greater than zero");
  return d;
}

Result<Decimal> FactsBuilder::number(const Json& schema, std::string_view keyword) const {
  const Json& value = *schema.find(keyword);
  if (!value.is(Json::Kind::number)) return reader_.refuse(&schema, keyword, "must be a number");
  auto decimal = Decimal::parse(value.text);
  if (!decimal)
    return reader_.refuse(&schema, keyword, "has more than {} digits; shorten it", kNumberDigitsMax);
  return *std::move(decimal);
}

Result<unsigned> FactsBuilder::types(const Json& schema) const {
  const Json& value = *schema.find("type");
  unsigned bits = 0;
  const auto add = [&](const Json& name) {
    const unsigned bit = name.is(Json::Kind::string) ? type_of(name.text) : 0;
    bits |= bit;
    return bit != 0;
  };
  const Json* nullable = schema.find("nullable");  // keyword of OpenAPI 3.0
  if (nullable && nullable->boolean) bits |= kNull;
  const bool list = value.is(Json::Kind::array);
  const Json* wrong = list == !value.items.empty() && (list || add(value)) ? nullptr : &value;
  for (const Json& name : value.items)
    if (!wrong && !add(name)) wrong = &name;
  if (!wrong) return bits;
  const std::string_view meant = wrong->is(Json::Kind::string) ? likely_type(wrong->text) : "";
  return reader_.refuse(
      &schema, "type",
      "must be one of null, boolean, integer, number, string, array, object, or a list of these, not {}{}",
      shortened(to_text(*wrong)), meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant));
}

}  // namespace octavo::grammar
