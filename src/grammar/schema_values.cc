#include <algorithm>
#include <utility>

#include "grammar/schema_reader.h"
#include "grammar/string_format.h"
#include "grammar/unicode.h"

namespace octavo::grammar {

bool equal(const Json& a, const Json& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Json::Kind::null:
      return true;
    case Json::Kind::boolean:
      return a.boolean == b.boolean;
    case Json::Kind::string:
      return a.text == b.text;
    case Json::Kind::number: {
      const auto x = Decimal::parse(a.text), y = Decimal::parse(b.text);
      return x && y ? *x == *y : a.text == b.text;
    }
    case Json::Kind::array:
      return std::ranges::equal(a.items, b.items, equal);
    case Json::Kind::object:
      return a.members.size() == b.members.size() && std::ranges::all_of(a.members, [&](const auto& member) {
               const Json* other = b.find(member.first);
               return other && equal(member.second, *other);
             });
  }
  return false;
}

namespace {

unsigned type_of(const Json& value) {
  switch (value.kind) {
    case Json::Kind::null:
      return kNull;
    case Json::Kind::boolean:
      return kBoolean;
    case Json::Kind::string:
      return kString;
    case Json::Kind::array:
      return kArray;
    case Json::Kind::object:
      return kObject;
    case Json::Kind::number: {
      const auto d = Decimal::parse(value.text);
      return d && d->is_integer() ? kInteger : kFraction;
    }
  }
  return 0;
}

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

Result<bool> SchemaReader::satisfies(const Json& value, const Goals& goals) {
  TRY(const std::vector<Facts> alternatives, read(goals));
  for (const Facts& facts : alternatives) {
    TRY(const bool yes, satisfies(value, facts));
    if (yes) return true;
  }
  return false;
}

Result<bool> SchemaReader::satisfies(const Json& value, const Facts& facts) {
  const auto same = [&](const Json* other) { return equal(*other, value); };
  TRY_VOID(work(1 + ((facts.values ? facts.values->size() : 0) + facts.excluded.size()) / 8, &value, ""));
  if ((facts.types & type_of(value)) == 0) return false;
  if (facts.values && std::ranges::none_of(*facts.values, same)) return false;
  if (std::ranges::any_of(facts.excluded, same)) return false;
  switch (value.kind) {
    case Json::Kind::null:
    case Json::Kind::boolean:
      return true;
    case Json::Kind::number: {
      const auto decimal = Decimal::parse(value.text);
      return decimal && within(facts.number, *decimal);
    }
    case Json::Kind::string: {
      if (length(value.text) < facts.length.min || length(value.text) > facts.length.max) return false;
      for (const Facts::Pattern& p : facts.patterns) {
        TRY(const Automaton* automaton, pattern(p.schema->find("pattern")->text, p.schema, "pattern"));
        if (matches(*automaton, value.text) == p.negated) return false;
      }
      for (const std::string_view name : facts.formats) {
        if (!matches(format_automaton(name), value.text)) return false;
      }
      return true;
    }
    case Json::Kind::array: {
      if (value.items.size() < facts.item_count.min || value.items.size() > facts.item_count.max)
        return false;
      for (std::size_t i = 0; facts.unique_items && i < value.items.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (equal(value.items[i], value.items[j])) return false;
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        TRY(const bool yes, satisfies(value.items[i], item_goals(facts, i)));
        if (!yes) return false;
      }
      for (const Facts::Contained& contained : facts.contains) {
        std::uint32_t found = 0;
        for (const Json& item : value.items) {
          TRY(const bool yes, satisfies(item, Goals{contained.goal}));
          found += yes;
        }
        if (found < contained.min || found > contained.max) return false;
      }
      return true;
    }
    case Json::Kind::object:
      break;
  }
  if (value.members.size() < facts.property_count.min || value.members.size() > facts.property_count.max)
    return false;
  for (const std::string_view name : facts.required)
    if (!value.find(name)) return false;
  for (const std::string_view name : facts.forbidden)
    if (value.find(name)) return false;
  for (const auto& [name, member] : value.members) {
    TRY(const Goals goals, property_goals(facts, name));
    TRY(const bool yes, satisfies(member, goals));
    if (!yes) return false;
    Json key;
    key.kind = Json::Kind::string;
    key.text = name;
    for (const Json* names : facts.property_names) {
      TRY(const bool fits, satisfies(key, Goals{{names}}));
      if (!fits) return false;
    }
  }
  return true;
}

// Returns true only if certainly no value satisfies both `a` and `b`.
Result<bool> SchemaReader::disjoint(const Goals& a, const Goals& b, int depth) {
  const bool before = std::exchange(narrowed_, false);
  TRY(const std::vector<Facts> left, read(a));
  TRY(const std::vector<Facts> right, read(b));
  bool apart = true;
  for (auto x = left.begin(); x != left.end() && apart; ++x)
    for (auto y = right.begin(); y != right.end() && apart; ++y) {
      TRY(apart, disjoint(*x, *y, depth));
    }
  apart = apart && !narrowed_;
  narrowed_ = narrowed_ || before;
  return apart;
}

Result<bool> SchemaReader::disjoint(const Facts& a, const Facts& b, int depth) {
  const unsigned common = a.types & b.types;
  if (common == 0) return true;
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!x->values) continue;
    bool any = false;
    for (const Json* value : *x->values) {
      TRY(const bool in_x, satisfies(*value, *x));
      TRY(const bool in_y, satisfies(*value, *y));
      any = any || (in_x && in_y);
    }
    return !any;
  }
  if (common & ~(kInteger | kFraction | kObject)) return false;
  if (common & (kInteger | kFraction)) {
    const auto below = [](const NumberLimits& x, const NumberLimits& y) {
      return x.max && y.min &&
             (x.max->value < y.min->value ||
              (x.max->value == y.min->value && (x.max->exclusive || y.min->exclusive)));
    };
    if (!below(a.number, b.number) && !below(b.number, a.number)) return false;
  }
  if (!(common & kObject)) return true;
  // Objects are disjoint if both require a property with disjoint values, or if one requires a property
  // that the other forbids.
  if (depth >= 3) return false;
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const std::string_view name : x->required) {
      TRY(Goals in_x, property_goals(*x, name));
      TRY(const Goals in_y, property_goals(*y, name));
      if (is_false(in_y) || std::ranges::find(y->forbidden, name) != y->forbidden.end()) return true;
      if (std::ranges::find(y->required, name) == y->required.end()) continue;
      if (in_x.empty() || in_y.empty()) continue;
      TRY(const bool apart, disjoint(in_x, in_y, depth + 1));
      if (apart) return true;
    }
  return false;
}

}  // namespace octavo::grammar
