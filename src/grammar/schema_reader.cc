#include "grammar/schema_reader.h"

#include <algorithm>
#include <functional>

#include "grammar/facts_builder.h"
#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/string_format.h"

namespace octavo::grammar {

namespace {

// Where subschemas are, by keyword; in_place: they apply to the same value.
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

std::string escaped_pointer(std::string_view token) {
  std::string out;
  for (const char c : token) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

bool find_path(const Json& node, const Json* wanted, std::string& path) {
  if (&node == wanted) return true;
  const std::size_t size = path.size();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    path += fmt::format("/{}", i);
    if (find_path(node.items[i], wanted, path)) return true;
    path.resize(size);
  }
  for (const auto& [key, child] : node.members) {
    path += fmt::format("/{}", escaped_pointer(key));
    if (find_path(child, wanted, path)) return true;
    path.resize(size);
  }
  return false;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto hex = [&](std::size_t at) {
      return at < text.size() ? std::string_view("0123456789abcdef").find(static_cast<char>(text[at] | 0x20))
                              : std::string_view::npos;
    };
    const auto high = hex(i + 1), low = hex(i + 2);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

void add_goal(Goals& goals, const Json& schema) {
  if (!schema.is(Json::Kind::boolean) || !schema.boolean) goals.push_back({&schema});
}

SchemaReader::SchemaReader(const Json& document, std::string_view field)
    : document_(document), field_(field) {
  if (const Json* dialect = document.find("$schema"))
    draft7_ = dialect->text.find("draft-07") != std::string::npos ||
              dialect->text.find("draft-06") != std::string::npos ||
              dialect->text.find("draft-04") != std::string::npos;
  index_anchors(document);
}

void SchemaReader::index_anchors(const Json& node) {
  if (const Json* anchor = node.find("$anchor"); anchor && anchor->is(Json::Kind::string))
    anchors_.emplace(anchor->text, &node);
  for (const Json& item : node.items) index_anchors(item);
  for (const auto& member : node.members) index_anchors(member.second);
}

std::string SchemaReader::path(const Json* schema, std::string_view keyword) const {
  std::string pointer = "#";
  find_path(document_, schema, pointer);
  return fmt::format("{}/{}", pointer, escaped_pointer(keyword));
}

bool SchemaReader::is_false(const Goals& goals) {
  return std::ranges::any_of(goals, [](const Goal& g) {
    return g.schema->is(Json::Kind::boolean) && g.schema->boolean == (g.kind == Goal::Kind::fails) &&
           (g.kind == Goal::Kind::holds || g.kind == Goal::Kind::fails);
  });
}

Result<const Json*> SchemaReader::resolve(const Json* schema, std::string_view keyword) {
  const Json* ref = schema->find(keyword);
  if (!ref->is(Json::Kind::string)) return refuse(schema, keyword, "must be a string");
  std::string_view text = ref->text;
  if (const Json* id = document_.find("$id"); id && !id->text.empty() && text.starts_with(id->text))
    text.remove_prefix(id->text.size());
  if (!text.empty() && text[0] != '#')
    return refuse(schema, keyword, "'{}' is outside of this schema", ref->text);
  if (text.size() <= 1) return &document_;
  const auto decoded = percent_decoded(text.substr(1));
  if (!decoded) return refuse(schema, keyword, "'{}' is malformed", ref->text);
  std::string_view pointer = *decoded;
  if (pointer[0] != '/') {
    const auto anchor = anchors_.find(pointer);
    if (anchor == anchors_.end()) return refuse(schema, keyword, "'{}' is defined nowhere", ref->text);
    return anchor->second;
  }
  const Json* node = &document_;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string token;
    for (std::size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) {
        token += pointer[++i] == '0' ? '~' : '/';
      } else {
        token += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    const Json* next = node->find(token);
    if (node->is(Json::Kind::array) && !token.empty() && token.size() < 7 &&
        token.find_first_not_of("0123456789") == std::string::npos && std::stoul(token) < node->items.size())
      next = &node->items[std::stoul(token)];
    if (!next) return refuse(schema, keyword, "'{}' points nowhere", ref->text);
    node = next;
  }
  return node;
}

Result<void> SchemaReader::check(const Json* schema) {
  if (!checked_.insert(schema).second) return {};
  if (schema->is(Json::Kind::boolean)) return {};
  if (!schema->is(Json::Kind::object)) return refuse(schema, "", "a schema must be an object or a boolean");
  for (const auto& [keyword, value] : schema->members) {
    const auto applicator = std::ranges::find(kApplicators, keyword, &Applicator::keyword);
    if (applicator != std::end(kApplicators)) {
      const bool tuple = keyword == "items" && value.is(Json::Kind::array);
      const Json::Kind wanted = applicator->holds == Holds::map ? Json::Kind::object : Json::Kind::array;
      if (applicator->holds == Holds::schema && !tuple) {
        if (!value.is(Json::Kind::object) && !value.is(Json::Kind::boolean))
          return refuse(schema, keyword, "must be a schema");
      } else if (!value.is(wanted)) {
        return refuse(schema, keyword, "must be {}", wanted == Json::Kind::object ? "an object" : "an array");
      }
      if (applicator->holds == Holds::schemas && value.items.empty())
        return refuse(schema, keyword, "must not be empty");
    }
    if (keyword == "required" || keyword == "enum") {
      if (!value.is(Json::Kind::array)) return refuse(schema, keyword, "must be an array");
      if (keyword == "required" &&
          !std::ranges::all_of(value.items, [](const Json& i) { return i.is(Json::Kind::string); }))
        return refuse(schema, keyword, "must be an array of strings");
    }
    if (keyword.starts_with("depende") && !value.is(Json::Kind::object))
      return refuse(schema, keyword, "must be an object");
    if (keyword == "pattern" && !value.is(Json::Kind::string))
      return refuse(schema, keyword, "must be a string");
    if (keyword == "$id" && schema != &document_)
      return refuse(schema, keyword, "is supported at the root only");
    if (keyword == "uniqueItems" && !value.is(Json::Kind::boolean))
      return refuse(schema, keyword, "must be a boolean");
  }
  return check_loops(schema);
}

Result<void> SchemaReader::check_loops(const Json* root) {
  // Depth-first over subschemas that apply in place; meeting one that is still open is a loop.
  struct Frame {
    const Json* schema;
    std::vector<const Json*> next;
  };
  std::vector<Frame> stack;
  std::set<const Json*> open;
  const auto enter = [&](const Json* schema) -> Result<void> {
    if (loop_free_.contains(schema)) return {};
    if (!open.insert(schema).second) return refuse(schema, "$ref", "the schema refers to itself without end");
    if (stack.size() > static_cast<std::size_t>(kSchemaDepthMax))
      return refuse(schema, "", "more than {} subschemas inside one another apply to one value",
                    kSchemaDepthMax);
    Frame frame{schema, {}};
    for (const Applicator& a : kApplicators) {
      const Json* value = a.in_place ? schema->find(a.keyword) : nullptr;
      if (!value) continue;
      if (a.holds == Holds::schema) frame.next.push_back(value);
      for (const Json& item : value->items)
        if (a.holds == Holds::schemas) frame.next.push_back(&item);
      for (const auto& member : value->members)
        if (a.holds == Holds::map) frame.next.push_back(&member.second);
    }
    if (schema->find("$ref")) {
      TRY(const Json* target, resolve(schema, "$ref"));
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
    return invalid(field_, "JSON Schema: 'oneOf' at {}: branches that nest too deeply to be told apart",
                   path(goals[0].schema, ""));
  TRY_VOID(work(1 + goals.size()));
  ++depth_;
  auto facts = FactsBuilder(*this).build(goals);
  --depth_;
  return facts;
}

// --- what holds of members and items ---

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
    if (items && items->is(Json::Kind::array)) {  // draft-7
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
      TRY_VOID(work(1 + properties->members.size() / 32));
      if (const Json* property = properties->find(name)) {
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
  TRY_VOID(work((facts.properties.size() + facts.required.size() + facts.forbidden.size()) / 32));
  for (const auto& [key, goal] : facts.properties)
    if (key == name) goals.push_back(goal);
  return goals;
}

// --- strings ---

Result<void> SchemaReader::work(std::size_t steps) {
  steps_ += steps;
  if (steps_ > kSchemaWorkMax)
    return invalid(
        field_,
        "JSON Schema: reading it takes more than {} steps: too many properties, values or combinations",
        kSchemaWorkMax);
  return {};
}

Result<const Automaton*> SchemaReader::pattern(std::string_view text, const Json* schema,
                                               std::string_view keyword) {
  auto it = patterns_.find(text);
  if (it == patterns_.end()) {
    Grammar grammar;
    const auto expr = add_regex(grammar, text, RegexMatch::search, field_);
    if (!expr) return refuse(schema, keyword, "{}", expr.error().message);
    std::size_t cost = 0;
    auto automaton = regular_automaton(grammar, *expr, kPatternStatesMax, &cost);
    if (!automaton)
      return refuse(schema, keyword, "the automaton of '{}' has more than {} states", text,
                    kPatternStatesMax);
    TRY_VOID(work(cost / 6 + 100 * automaton->states.size()));
    it = patterns_.emplace(text, std::make_unique<const Automaton>(*std::move(automaton))).first;
  }
  return it->second.get();
}

Result<const Automaton*> SchemaReader::format(std::string_view name, const Facts& facts) {
  const Json* blame = facts.patterns.empty() ? &document_ : facts.patterns[0].schema;
  return pattern(fmt::format("^(?:{})$", *format_pattern(name)), blame, "format");
}

Result<std::optional<Automaton>> SchemaReader::contents(const Facts& facts) {
  std::vector<std::string> excluded;
  for (const Json* value : facts.excluded)
    if (value->is(Json::Kind::string)) excluded.push_back(value->text);
  if (facts.patterns.empty() && facts.formats.empty() && excluded.empty()) return std::optional<Automaton>{};
  std::optional<Automaton> all;
  std::size_t cost = 0;
  {
    Grammar grammar;
    const ExprId character = content_character(grammar);
    const bool bounded = facts.length_min > 0 || facts.length_max != UINT32_MAX;
    all = regular_automaton(grammar,
                            grammar.repeat(character, bounded ? facts.length_min : 0, facts.length_max),
                            kPatternStatesMax, &cost);
  }
  const Json* blame = facts.patterns.empty() ? &document_ : facts.patterns[0].schema;
  const auto too_large = [&] {
    return refuse(blame, facts.patterns.empty() ? "format" : "pattern",
                  "with its length limits and other patterns the automaton has more than {} states",
                  kDfaStatesMax);
  };
  const auto narrow = [&](const Automaton& other, Combine how) {
    if (all) all = combine(*all, other, how, kDfaStatesMax);
  };
  for (const Facts::Pattern& p : facts.patterns) {
    TRY(const Automaton* automaton, pattern(p.schema->find("pattern")->text, p.schema, "pattern"));
    narrow(*automaton, p.negated ? Combine::difference : Combine::intersection);
  }
  for (const std::string_view name : facts.formats) {
    TRY(const Automaton* automaton, format(name, facts));
    narrow(*automaton, Combine::intersection);
  }
  if (!excluded.empty()) narrow(automaton_of(std::move(excluded)), Combine::difference);
  if (!all) return too_large();
  TRY_VOID(work(cost / 3 + 50 * all->states.size()));
  return all;
}

}  // namespace octavo::grammar
