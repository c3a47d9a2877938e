#include "grammar/schema_reader.h"

#include <algorithm>
#include <functional>

#include "grammar/facts_builder.h"
#include "grammar/json_pointer.h"
#include "grammar/limits.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

namespace {

// Type of a keyword's value: a schema, an array of schemas, or an object of schemas (`map`). in_place: the
// schemas apply to the same value as the keyword.
enum class Holds : std::uint8_t { schema, schemas, map };
struct Applicator {
  std::string_view keyword;
  Holds holds;
  bool in_place;
};
constexpr Applicator kApplicators[] = {{"allOf", Holds::schemas, true},
                                       {"anyOf", Holds::schemas, true},
                                       {"oneOf", Holds::schemas, true},
                                       {"not", Holds::schema, true},
                                       {"if", Holds::schema, true},
                                       {"then", Holds::schema, true},
                                       {"else", Holds::schema, true},
                                       {"dependentSchemas", Holds::map, true},
                                       {"properties", Holds::map, false},
                                       {"patternProperties", Holds::map, false},
                                       {"additionalProperties", Holds::schema, false},
                                       {"propertyNames", Holds::schema, false},
                                       {"prefixItems", Holds::schemas, false},
                                       {"items", Holds::schema, false},
                                       {"additionalItems", Holds::schema, false},
                                       {"contains", Holds::schema, false},
                                       {"unevaluatedProperties", Holds::schema, false},
                                       {"unevaluatedItems", Holds::schema, false}};

}  // namespace

void add_goal(Goals& goals, const Json& schema) {
  if (!schema.is(Json::Kind::boolean) || !schema.boolean) goals.push_back({&schema});
}

namespace {

Dialect declared_dialect(const Json& document) {
  const Json* uri = document.find("$schema");
  return uri ? dialect_of(uri->text) : Dialect::draft2020;
}

}  // namespace

SchemaReader::SchemaReader(const Json& document, std::string_view field, bool refuse_unknown)
    : document_(document),
      field_(field),
      dialect_(declared_dialect(document)),
      refuse_unknown_(refuse_unknown),
      references_(document, dialect_) {}

bool SchemaReader::counts(const Json& schema, std::string_view keyword) const {
  if (role_of(keyword, dialect_) != KeywordRole::constrains) return false;
  return dialect_ > Dialect::draft7 || keyword == "$ref" || !schema.find("$ref");
}

std::string SchemaReader::path(const Json* schema, std::string_view keyword) const {
  const std::string pointer = schema->offset < kMadeOffset ? pointer_to(document_, *schema) : "#";
  return keyword.empty() ? pointer : fmt::format("{}/{}", pointer, escaped_pointer(keyword));
}

bool SchemaReader::is_false(const Goals& goals) {
  return std::ranges::any_of(goals, [](const Goal& g) {
    return g.schema->is(Json::Kind::boolean) && g.schema->boolean == (g.kind == Goal::Kind::fails) &&
           (g.kind == Goal::Kind::holds || g.kind == Goal::Kind::fails);
  });
}

Result<const Json*> SchemaReader::resolve(const Json* schema, std::string_view keyword) {
  const auto target = references_.target(*schema, keyword);
  if (!target) return refuse(schema, keyword, "{}", target.error());
  return *target;
}

Result<void> SchemaReader::check(const Json* schema) {
  if (!checked_.insert(schema).second) return {};
  if (schema->is(Json::Kind::boolean)) return {};
  if (!schema->is(Json::Kind::object)) return refuse(schema, "", "a schema must be an object, true or false");
  for (const auto& [keyword, value] : schema->members) {
    const KeywordRole role = role_of(keyword, dialect_);
    if (role == KeywordRole::unknown) TRY_VOID(unknown(schema, "keyword", keyword));
    if (role != KeywordRole::serves && !counts(*schema, keyword)) continue;
    const auto applicator = std::ranges::find(kApplicators, keyword, &Applicator::keyword);
    if (applicator != std::end(kApplicators)) {
      const bool tuple = keyword == "items" && value.is(Json::Kind::array);
      const Json::Kind wanted = applicator->holds == Holds::map ? Json::Kind::object : Json::Kind::array;
      if (applicator->holds == Holds::schema && !tuple) {
        if (!value.is(Json::Kind::object) && !value.is(Json::Kind::boolean))
          return refuse(schema, keyword, "must be a schema: an object, true or false");
      } else if (!value.is(wanted)) {
        return refuse(schema, keyword, "must be {}", wanted == Json::Kind::object ? "an object" : "an array");
      }
      if (applicator->holds == Holds::schemas && value.items.empty())
        return refuse(schema, keyword, "must not be empty; add a schema, or remove the keyword");
    }
    if (keyword == "enum" && !value.is(Json::Kind::array)) return refuse(schema, keyword, "must be an array");
    if (keyword == "required" || keyword.starts_with("depende"))
      TRY_VOID(check_names(schema, keyword, value));
    if (keyword == "pattern" && !value.is(Json::Kind::string))
      return refuse(schema, keyword, "must be a string");
    if (keyword == "uniqueItems" && !value.is(Json::Kind::boolean))
      return refuse(schema, keyword, "must be a boolean");
    if (keyword == "format") {
      if (!value.is(Json::Kind::string)) return refuse(schema, keyword, "must be a string");
      if (!is_format(value.text)) TRY_VOID(unknown(schema, "format", value.text));
    }
  }
  return check_loops(schema);
}

// Checks the values of `required` and of the dependency keywords, which contain member names.
Result<void> SchemaReader::check_names(const Json* schema, std::string_view keyword,
                                       const Json& value) const {
  const auto names = [](const Json& list) {
    return list.is(Json::Kind::array) &&
           std::ranges::all_of(list.items, [](const Json& item) { return item.is(Json::Kind::string); });
  };
  if (keyword != "required") {
    if (!value.is(Json::Kind::object)) return refuse(schema, keyword, "must be an object");
    for (const auto& [name, list] : value.members)
      if (keyword == "dependentRequired" && !names(list))
        return refuse(schema, keyword, "the value of '{}' must be an array of member names", shortened(name));
    return {};
  }
  if (value.is(Json::Kind::boolean))
    return refuse(
        schema, keyword,
        "must be an array of member names; add the name of this member to 'required' of its object");
  if (!names(value)) return refuse(schema, keyword, "must be an array of member names");
  return {};
}

Result<void> SchemaReader::unknown(const Json* schema, std::string_view what, std::string_view name) const {
  const auto meant = what == "keyword" ? likely_constraint(name) : likely_format(name);
  const std::string hint = meant ? fmt::format("; did you mean '{}'?", *meant) : "";
  if (refuse_unknown_)
    return refuse(schema, what == "keyword" ? name : what, "{} '{}' is not known{}", what, name, hint);
  log_ignored(what, name, meant);
  return {};
}

Result<void> SchemaReader::check_loops(const Json* root) {
  // Depth-first search over subschemas that apply to the same value. If it reaches a schema that is still
  // open, there is a loop.
  struct Frame {
    const Json* schema;
    std::vector<const Json*> next;
  };
  std::vector<Frame> stack;
  std::set<const Json*> open;
  const auto enter = [&](const Json* schema) -> Result<void> {
    if (loop_free_.contains(schema)) return {};
    if (!open.insert(schema).second)
      return refuse(schema, "$ref", "the schema refers only to itself; refer to another schema");
    if (stack.size() > static_cast<std::size_t>(kSchemaDepthMax))
      return refuse(schema, "", "more than {} nested subschemas apply to one value; flatten them",
                    kSchemaDepthMax);
    Frame frame{schema, {}};
    for (const Applicator& a : kApplicators) {
      const Json* value = a.in_place ? schema->find(a.keyword) : nullptr;
      if (!value || (role_of(a.keyword, dialect_) != KeywordRole::serves && !counts(*schema, a.keyword)))
        continue;
      if (a.holds == Holds::schema) frame.next.push_back(value);
      for (const Json& item : value->items)
        if (a.holds == Holds::schemas) frame.next.push_back(&item);
      for (const auto& member : value->members)
        if (a.holds == Holds::map) frame.next.push_back(&member.second);
    }
    for (const std::string_view keyword : kReferences)
      if (schema->find(keyword) && counts(*schema, keyword)) {
        TRY(const Json* target, resolve(schema, keyword));
        frame.next.push_back(target);
      }
    stack.push_back(std::move(frame));
    return {};
  };
  TRY_VOID(enter(root));
  while (!stack.empty()) {
    if (stack.back().next.empty()) {
      open.erase(stack.back().schema);
      loop_free_.insert(stack.back().schema);
      stack.pop_back();
      continue;
    }
    const Json* next = stack.back().next.back();
    stack.back().next.pop_back();
    TRY_VOID(enter(next));
  }
  return {};
}

Result<std::vector<Facts>> SchemaReader::read(const Goals& goals) {
  if (depth_ > 8)
    return invalid(
        field_, "JSON Schema: 'oneOf' at {}: the branches are nested too deeply to be compared; flatten them",
        path(goals[0].schema, ""));
  TRY_VOID(work(1 + goals.size(), goals.empty() ? &document_ : goals[0].schema, ""));
  ++depth_;
  auto facts = FactsBuilder(*this).build(goals);
  --depth_;
  return facts;
}

// --- Goals of members and items ---

std::size_t SchemaReader::prefix_size(const Facts& facts) const {
  std::size_t size = 0;
  for (const Json* schema : facts.arrays)
    for (const std::string_view keyword : {"prefixItems", "items"})
      if (const Json* list = schema->find(keyword); list && list->is(Json::Kind::array))
        size = std::max(size, list->items.size());
  return size;
}

Goals SchemaReader::item_goals(const Facts& facts, std::size_t index) const {
  Goals goals;
  for (const Json* schema : facts.arrays) {
    const Json *prefix = schema->find("prefixItems"), *items = schema->find("items");
    const Json* rest = items;
    if (items && items->is(Json::Kind::array)) {  // up to draft 2019-09
      prefix = items;
      rest = schema->find("additionalItems");
    }
    if (prefix && index < prefix->items.size())
      add_goal(goals, prefix->items[index]);
    else if (rest)
      add_goal(goals, *rest);
  }
  return goals;
}

Result<Goals> SchemaReader::property_goals(const Facts& facts, std::string_view name) {
  Goals goals;
  for (const Json* schema : facts.objects) {
    bool named = false;
    if (const Json* properties = schema->find("properties")) {
      TRY_VOID(work(1, schema, "properties"));
      if (const Json* property = member(*properties, name)) {
        add_goal(goals, *property);
        named = true;
      }
    }
    if (const Json* by_pattern = schema->find("patternProperties"))
      for (const auto& [key, property] : by_pattern->members) {
        TRY(const Automaton* automaton, pattern(key, schema, "patternProperties"));
        if (!matches(*automaton, name)) continue;
        add_goal(goals, property);
        named = true;
      }
    if (const Json* additional = schema->find("additionalProperties"); additional && !named)
      add_goal(goals, *additional);
  }
  if (!facts.properties.empty())
    TRY_VOID(work(facts.properties.size() / 32, facts.properties[0].second.schema, ""));
  for (const auto& [key, goal] : facts.properties)
    if (key == name) goals.push_back(goal);
  return goals;
}

const Json* SchemaReader::member(const Json& object, std::string_view name) {
  // below this number, a linear search is faster than a map
  constexpr std::size_t kFew = 16;
  if (object.members.size() <= kFew) return object.find(name);
  auto& by_name = members_[&object];
  if (by_name.empty())
    for (const auto& [key, value] : object.members) by_name.emplace(key, &value);
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

const Json* SchemaReader::made(Json schema) {
  schema.offset = kMadeOffset + made_.size();
  const std::string text = to_text(schema);
  const auto [entry, added] = made_.try_emplace(text, std::move(schema));
  // The next call of work() checks the limit.
  steps_ += added ? text.size() : text.size() / 16;
  return &entry->second;
}

// --- Equal subschemas ---

namespace {

// Returns true if the keyword constrains nothing, not even together with other keywords.
bool is_annotation(std::string_view keyword) {
  constexpr std::string_view kAnnotations[] = {"title",    "description", "default",  "examples",
                                               "$comment", "deprecated",  "readOnly", "writeOnly"};
  return std::ranges::find(kAnnotations, keyword) != std::end(kAnnotations);
}

}  // namespace

const Json* SchemaReader::first_like(const Json* schema) {
  if (!schema->is(Json::Kind::object)) return schema;
  if (const auto known = like_.find(schema); known != like_.end()) return known->second;
  // text of the schema in which each subschema is replaced by the offset of the first equal schema
  std::string text;
  const auto name = [&](const Json& sub) {
    if (sub.is(Json::Kind::object))
      text += fmt::format("@{}", first_like(&sub)->offset);
    else
      text += to_text(sub);
  };
  for (const auto& [keyword, value] : schema->members) {
    if (is_annotation(keyword)) continue;
    text += fmt::format("{} {}:", keyword.size(), keyword);
    const auto applicator = std::ranges::find(kApplicators, keyword, &Applicator::keyword);
    if (applicator == std::end(kApplicators)) {
      text += to_text(value);
    } else if (applicator->holds == Holds::map && value.is(Json::Kind::object)) {
      for (const auto& [key, sub] : value.members) {
        text += fmt::format("{} {}:", key.size(), key);
        name(sub);
      }
    } else if (value.is(Json::Kind::array)) {
      text += '[';
      for (const Json& sub : value.items) name(sub);
    } else {
      name(value);
    }
    text += '\n';
  }
  const Json* first = first_of_.try_emplace(std::move(text), schema).first->second;
  return like_[schema] = first;
}

Result<void> SchemaReader::work(std::size_t steps, const Json* schema, std::string_view keyword) {
  steps_ += steps;
  if (steps_ > kSchemaWorkMax)
    return refuse(schema, keyword,
                  "reading the schema up to here takes more than {} steps; use fewer properties, values or "
                  "combinations",
                  kSchemaWorkMax);
  return {};
}

}  // namespace octavo::grammar
