#include "grammar/schema_writer.h"

#include <algorithm>

#include "grammar/json_number.h"
#include "grammar/json_string.h"
#include "grammar/limits.h"
#include "grammar/regex.h"
#include "grammar/string_format.h"
#include "grammar/text_length.h"

namespace octavo::grammar {

namespace {

// If `enum` or `const` lists more arrays and objects than this, they are written without white space, with
// members in the schema's order.
constexpr std::size_t kValuesWrittenMax = 2000;

std::size_t value_size(const Json& value) {
  std::size_t size = 1;
  for (const Json& item : value.items) size += value_size(item);
  for (const auto& member : value.members) size += value_size(member.second);
  return size;
}

// Returns the value as the schema writes it. For numbers, also returns the form without exponent and trailing
// zeros.
std::vector<std::string> spellings(const Json& value) {
  constexpr std::size_t kPlainMax = 40;
  std::vector<std::string> texts{to_text(value)};
  const auto number = value.is(Json::Kind::number) ? Decimal::parse(value.text) : std::nullopt;
  if (!number || number->integer.size() + number->fraction.size() > kPlainMax) return texts;
  const std::string plain =
      fmt::format("{}{}{}{}", number->negative ? "-" : "", number->integer.empty() ? "0" : number->integer,
                  number->fraction.empty() ? "" : ".", number->fraction);
  if (plain != texts[0]) texts.push_back(plain);
  return texts;
}

// Returns the number of repetitions that are unbounded or too large to unroll.
std::size_t long_repeats(const Grammar& grammar) {
  return static_cast<std::size_t>(std::ranges::count_if(grammar.exprs, [](const Expr& expr) {
    const auto* repeat = std::get_if<Repeat>(&expr.node);
    return repeat && repeat->max > kUnrollStatesMax;
  }));
}

}  // namespace

Result<RuleId> SchemaWriter::write(const Goals& goals) {
  TRY(const RuleId root, rule_for(goals));
  while (!queue_.empty()) {
    const auto [rule, wanted] = queue_.front();
    queue_.pop_front();
    const std::size_t written = g_.exprs.size();
    TRY(g_.rules[rule].body, values(*wanted));
    TRY_VOID(reader_.work(3 * (g_.exprs.size() - written), wanted->front().schema, ""));
  }
  return root;
}

Result<RuleId> SchemaWriter::rule_for(Goals goals) {
  for (Goal& goal : goals)
    if (goal.kind == Goal::Kind::holds || goal.kind == Goal::Kind::fails)
      goal.schema = reader_.first_like(goal.schema);
  std::ranges::sort(goals);
  goals.erase(std::ranges::unique(goals).begin(), goals.end());
  const auto it = rules_.find(goals);
  if (it != rules_.end()) return it->second;
  if (rules_.size() >= static_cast<std::size_t>(kSubschemasMax))
    return reader_.refuse(goals[0].schema, "",
                          "more than {} different combinations of subschemas; use fewer alternatives",
                          kSubschemasMax);
  const RuleId rule = goals.empty() ? any_value() : g_.rule(reader_.path(goals[0].schema, ""));
  const auto entry = rules_.emplace(std::move(goals), rule).first;
  if (!entry->first.empty()) queue_.emplace_back(rule, &entry->first);
  return rule;
}

Result<ExprId> SchemaWriter::values(const Goals& goals) {
  TRY(const std::vector<Facts> alternatives, reader_.read(goals));
  std::vector<ExprId> branches;
  for (const Facts& facts : alternatives) {
    TRY(branches.emplace_back(), values(facts));
  }
  return g_.choice(std::move(branches));
}

Result<ExprId> SchemaWriter::values(const Facts& facts) {
  if (facts.values) return listed(facts);
  Facts rest = facts;
  rest.excluded.clear();
  std::vector<const Json*> excluded;
  for (const Json* value : facts.excluded) {
    TRY(const bool matters, reader_.satisfies(*value, rest));
    if (matters) excluded.push_back(value);
  }
  const auto excludes = [&](Json::Kind kind) {
    return std::ranges::any_of(excluded, [&](const Json* v) { return v->is(kind); });
  };
  Facts left = facts;
  for (const Json* value : excluded) {
    const bool array = value->is(Json::Kind::array);
    if (!array && !value->is(Json::Kind::object)) continue;
    if (!value->items.empty() || !value->members.empty())
      return reader_.refuse(value, "",
                            "a value that 'not' excludes may not be an array or object, except [] and {{}}; "
                            "exclude other values");
    std::uint32_t& least = array ? left.item_count.min : left.property_count.min;
    least = std::max(least, 1u);
  }

  std::vector<ExprId> branches;
  const auto add = [&](unsigned type, auto&& write) -> Result<void> {
    if ((facts.types & type) == 0) return {};
    TRY(branches.emplace_back(), write());
    return {};
  };
  const auto literal = [&](std::string_view text) {
    return [this, text]() -> Result<ExprId> { return g_.literal(text); };
  };
  if (!excludes(Json::Kind::null)) TRY_VOID(add(kNull, literal("null")));
  for (const bool value : {true, false})
    if (std::ranges::none_of(
            excluded, [&](const Json* v) { return v->is(Json::Kind::boolean) && v->boolean == value; }))
      TRY_VOID(add(kBoolean, literal(value ? "true" : "false")));
  TRY_VOID(add(kInteger | kFraction, [&] { return number(facts, excluded); }));
  TRY_VOID(add(kString, [&] { return string(facts); }));
  TRY_VOID(add(kArray, [&] { return array(left); }));
  TRY_VOID(add(kObject, [&] { return object(left); }));
  return g_.choice(std::move(branches));
}

Result<ExprId> SchemaWriter::listed(const Facts& facts) {
  Facts rest = facts;
  rest.values.reset();
  std::vector<std::string> texts;
  std::vector<ExprId> branches;
  std::size_t written = 0;  // number of arrays and objects so far
  for (const Json* value : *facts.values) {
    TRY(const bool fits, reader_.satisfies(*value, rest));
    if (!fits) continue;
    const std::size_t size = value_size(*value);
    if (size > 1 && written + size <= kValuesWrittenMax) {
      written += size;
      branches.push_back(value_text(*value));
    } else {
      for (std::string& text : spellings(*value)) texts.push_back(std::move(text));
    }
  }
  const std::size_t bytes = trie_bytes(texts);
  TRY_VOID(reader_.work(bytes, facts.about, ""));
  if (bytes > kListBytesMax)
    return reader_.refuse(
        (*facts.values)[0], "",
        "the values have more than {} bytes after their common beginnings; list fewer or shorter values",
        kListBytesMax);
  if (!texts.empty()) branches.push_back(g_.leaf(automaton_of(std::move(texts))));
  return g_.choice(std::move(branches));
}

// Returns an expression for the text of a value, with the same optional white space as in the rest of the
// document.
ExprId SchemaWriter::value_text(const Json& value) {
  if (value.is(Json::Kind::array) && !value.items.empty()) {
    std::vector<ExprId> parts{g_.literal("["), space()};
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) parts.push_back(comma());
      parts.push_back(value_text(value.items[i]));
    }
    parts.insert(parts.end(), {space(), g_.literal("]")});
    return g_.sequence(std::move(parts));
  }
  if (value.is(Json::Kind::object) && !value.members.empty()) {
    const auto count = static_cast<std::uint32_t>(value.members.size());
    std::vector<ExprId> members;
    for (const auto& [name, member] : value.members)
      members.push_back(g_.sequence({g_.literal(written_name(name)), colon(), value_text(member)}));
    const bool in_order = !options_.any_order || count < 2 || count > kAnyOrderMax;
    const ExprId all = in_order ? g_.sequence({in_turn(members), space()}) : each_once(members, count, count);
    return g_.sequence({g_.literal("{"), space(), all, g_.literal("}")});
  }
  std::vector<ExprId> texts;
  for (const std::string& text : spellings(value)) texts.push_back(g_.literal(text));
  return g_.choice(std::move(texts));
}

ExprId SchemaWriter::in_turn(const std::vector<ExprId>& parts) {
  std::vector<ExprId> all;
  for (const ExprId part : parts) {
    if (!all.empty()) all.push_back(comma());
    all.push_back(part);
  }
  return g_.sequence(std::move(all));
}

// Returns an expression for `min` to `max` different parts with commas between them.
ExprId SchemaWriter::each_once(const std::vector<ExprId>& parts, std::uint32_t min, std::uint32_t max) {
  if (min > max || min > parts.size()) return g_.nothing();
  if (max == 0 || parts.empty()) return g_.empty();
  AnyOrder all{{},
               std::vector<bool>(parts.size(), false),
               {},
               g_.call(separator()),
               std::max(1u, min),
               max < parts.size() ? max : kUnbounded};
  for (const ExprId part : parts) all.parts.push_back(g_.call(g_.rule("", part)));
  const ExprId some = g_.sequence({g_.any_order(std::move(all)), space()});
  return min == 0 ? g_.choice({g_.empty(), some}) : some;
}

Result<ExprId> SchemaWriter::number(const Facts& facts, const std::vector<const Json*>& excluded) {
  NumberLimits limits = facts.number;
  limits.integers = facts.types & kInteger;
  limits.fractions = facts.types & kFraction;
  // Counts the work for the automata of the bounds. The work for a bound grows with its number of digits.
  for (const auto* bound : {&limits.min, &limits.max}) {
    if (!*bound) continue;
    const std::string digits = (*bound)->value.integer + (*bound)->value.fraction;
    TRY_VOID(reader_.work(100 + 20 * digits.size() * (digits.find_last_not_of('0') + 1), facts.about, ""));
  }
  std::vector<Decimal> divisors = limits.multiples;
  divisors.insert(divisors.end(), limits.non_multiples.begin(), limits.non_multiples.end());
  for (const Decimal& multiple : divisors) {
    const auto divisor = Decimal::parse(multiple.integer + multiple.fraction);
    TRY_VOID(reader_.work(
        100 * std::min(kMultipleOfMax, divisor ? divisor->count().value_or(kMultipleOfMax) : kMultipleOfMax),
        facts.schema_of("multipleOf"), "multipleOf"));
  }
  const auto text = number_text(g_, limits);
  if (!text && text.error() == NumberProblem::multiple_of)
    return reader_.refuse(facts.schema_of("multipleOf"), "multipleOf",
                          "may be at most {}, without its decimal point; use a smaller value or remove it",
                          kMultipleOfMax);
  if (!text)
    return reader_.refuse(
        facts.schema_of("multipleOf"), "multipleOf",
        "together with the limits of the number it needs more than {} states; use a simpler value",
        kDfaStatesMax);
  return without_numbers(*text, excluded, limits.fractions);
}

// Removes the excluded values from `text`. If it removes any, the result has no texts with exponents.
Result<ExprId> SchemaWriter::without_numbers(ExprId text, const std::vector<const Json*>& excluded,
                                             bool fractions) {
  Grammar scratch;
  std::vector<ExprId> equal_texts;
  const Json* first = nullptr;
  for (const Json* value : excluded) {
    const auto d = value->is(Json::Kind::number) ? Decimal::parse(value->text) : std::nullopt;
    if (!d) continue;
    first = first ? first : value;
    const ExprId sign = d->is_zero() ? scratch.optional(scratch.literal("-"))
                                     : scratch.literal(d->negative ? "-" : ""),
                 whole = scratch.literal(d->integer.empty() ? "0" : d->integer),
                 zeros = scratch.repeat(scratch.literal("0"), 0, kUnbounded),
                 fraction = d->is_integer()
                                ? scratch.optional(scratch.sequence({scratch.literal(".0"), zeros}))
                                : scratch.sequence({scratch.literal("." + d->fraction), zeros});
    equal_texts.push_back(scratch.sequence({sign, whole, fraction}));
    if (!fractions) continue;
    // Also removes texts with nine zeros after the value. Otherwise a model could write zeros forever,
    // because a later digit would make the text valid.
    const std::string point = d->is_integer() ? "." : fmt::format(".{}", d->fraction);
    equal_texts.push_back(scratch.sequence({sign, whole, scratch.literal(point + "000000000"),
                                            scratch.repeat(scratch.byte_range('0', '9'), 0, kUnbounded)}));
  }
  if (!first) return text;
  auto left = regular_automaton(g_, text, kDfaStatesMax);
  const auto narrow = [&](ExprId other, Combine how) {
    const auto texts = left ? regular_automaton(scratch, other, kDfaStatesMax) : std::nullopt;
    left = texts ? combine(*left, *texts, how, kDfaStatesMax) : std::nullopt;
  };
  if (fractions) {
    const ExprId plain =
        scratch.choice({scratch.byte_range('0', '9'), scratch.literal("-"), scratch.literal(".")});
    narrow(scratch.repeat(plain, 0, kUnbounded), Combine::intersection);
  }
  narrow(scratch.choice(std::move(equal_texts)), Combine::difference);
  if (!left)
    return reader_.refuse(first, "",
                          "the numbers without the excluded ones need more than {} states; exclude fewer",
                          kDfaStatesMax);
  return g_.leaf(*std::move(left));
}

Result<ExprId> SchemaWriter::string(const Facts& facts) {
  if (facts.length.min > facts.length.max) return g_.nothing();
  const LengthRange wanted = facts.length;
  auto found = reader_.contents(facts);
  if (!found) {
    // If counted_string() also fails, returns the first error, because the second one has no position.
    const auto counted = counted_string(facts);
    if (counted && *counted) return **counted;
    return std::unexpected(std::move(found.error()));
  }
  const Automaton* contents = *found;
  if (!contents) {
    if (wanted.min == 0 && wanted.max == kUnbounded) return g_.call(any_string());
    return quoted(g_.repeat(string_character(g_), wanted.min, wanted.max));
  }
  const auto [known, fresh] = strings_.try_emplace({contents, wanted.min, wanted.max});
  if (fresh) {
    TRY(const ExprId text, string_text(facts, *contents));
    known->second = g_.rule("", text);
  }
  return g_.call(known->second);
}

// For a pattern that has too many states for one automaton: returns an expression whose repetitions are
// counted at run time.
Result<std::optional<ExprId>> SchemaWriter::counted_string(const Facts& facts) {
  const auto pattern = reader_.only_pattern(facts);
  if (!pattern) return std::nullopt;
  TRY_VOID(reader_.work(2000, facts.about, ""));
  Grammar unspelled;
  TRY(const ExprId whole, add_regex(unspelled, *pattern, RegexMatch::search, ""));
  const bool any_length = facts.length.min == 0 && facts.length.max == kUnbounded;
  const auto cut = any_length ? std::optional(whole) : of_length(unspelled, whole, facts.length);
  const auto text = cut ? spelled(g_, unspelled, *cut) : std::nullopt;
  return text ? std::optional(g_.call(g_.rule("", quoted(*text)))) : std::nullopt;
}

Result<ExprId> SchemaWriter::string_text(const Facts& facts, const Automaton& contents) {
  const LengthRange wanted = facts.length;
  // If a pattern has only one long repetition, that repetition is counted at run time. Then all positions in
  // the repetition have the same mask.
  const bool fits = wanted.contains(lengths_of(contents));
  if (const auto pattern = reader_.only_pattern(facts);
      pattern && (!fits || contents.states.size() > kUnrollStatesMax)) {
    Grammar unspelled;
    TRY_VOID(reader_.work(2000, facts.about, ""));
    TRY(const ExprId whole, add_regex(unspelled, *pattern, RegexMatch::search, ""));
    const auto cut =
        fits && long_repeats(unspelled) != 1 ? std::nullopt : of_length(unspelled, whole, wanted);
    const auto text = cut ? spelled(g_, unspelled, *cut) : std::nullopt;
    if (text) return quoted(*text);
    const auto within = fits || facts.formats.empty()
                            ? std::nullopt
                            : format_pattern_within(facts.formats[0], wanted.min, wanted.max);
    if (within) {
      Grammar counted;
      TRY(const ExprId all, add_regex(counted, *within, RegexMatch::full, ""));
      if (const auto written = spelled(g_, counted, all)) return quoted(*written);
    }
  }
  // If an automaton for all allowed lengths is too large, the result only allows the shorter lengths.
  constexpr std::uint32_t kLengthsMin = 100;
  const auto room = static_cast<std::uint32_t>(kDfaStatesMax / contents.states.size());
  for (const std::uint32_t more : {kUnbounded, room, room / 2, room / 4}) {
    LengthRange range = wanted;
    if (more != kUnbounded) range.max = std::min(range.max, range.min + more);
    if (range.max < wanted.max && more < kLengthsMin) break;
    const auto cut = range.contains(lengths_of(contents)) ? std::optional(contents)
                                                          : of_length(contents, range, kDfaStatesMax);
    TRY_VOID(reader_.work(cut ? 10 * cut->states.size() : 3 * kDfaStatesMax, facts.about, ""));
    const auto text = cut ? spelled(*cut) : std::nullopt;
    if (!text) continue;
    TRY_VOID(reader_.work(10 * text->states.size(), facts.about, ""));
    return g_.leaf(between_quotes(*text));
  }
  return reader_.too_many_lengths(facts);
}

// --- Shared parts ---

// White space before a member or item and before the closing bracket: none, one space, or an indented line
// break. Its length is limited, because a model could write white space forever.
ExprId SchemaWriter::space() {
  constexpr std::uint32_t kSpacesMax = 40, kTabsMax = 16;
  if (options_.whitespace == JsonOptions::Whitespace::none) return g_.empty();
  if (!space_) {
    const auto up_to = [&](std::string_view text, std::uint32_t most) {
      const RuleId one = g_.rule("", g_.literal(text)), many = g_.rule("", g_.call(one));
      g_.rules[many].min = 1;
      g_.rules[many].max = most;
      return g_.call(many);
    };
    const ExprId indentation = g_.choice({g_.empty(), up_to(" ", kSpacesMax), up_to("\t", kTabsMax)});
    space_ = g_.choice({g_.empty(), g_.literal(" "), g_.sequence({g_.literal("\n"), indentation})});
  }
  return *space_;
}

ExprId SchemaWriter::colon() {
  const bool compact = options_.whitespace == JsonOptions::Whitespace::none;
  return g_.sequence({g_.literal(":"), compact ? g_.empty() : g_.optional(g_.literal(" "))});
}

RuleId SchemaWriter::separator() {
  if (!separator_) separator_ = g_.rule("", comma());
  return *separator_;
}

RuleId SchemaWriter::any_string() {
  if (!string_) string_ = g_.rule("", quoted(g_.repeat(string_character(g_), 0, kUnbounded)));
  return *string_;
}

RuleId SchemaWriter::any_value() {
  if (value_) return *value_;
  value_ = g_.rule("");
  const RuleId array = g_.rule("");
  g_.rules[array].body = array_of(g_.call(*value_), 0, kUnbounded);
  const ExprId number = *number_text(g_, {});
  g_.rules[*value_].body = g_.choice({g_.literal("null"), g_.literal("true"), g_.literal("false"), number,
                                      g_.call(any_string()), g_.call(array), g_.call(any_object())});
  return *value_;
}

RuleId SchemaWriter::any_object() {
  if (object_) return *object_;
  object_ = g_.rule("");
  const RuleId value = any_value();
  const ExprId member = g_.sequence({g_.call(any_string()), colon(), g_.call(value)});
  const ExprId more = g_.repeat(g_.sequence({comma(), member}), 0, kUnbounded);
  g_.rules[*object_].body =
      g_.choice({g_.sequence({g_.literal("{"), space(), g_.literal("}")}),
                 g_.sequence({g_.literal("{"), space(), member, more, space(), g_.literal("}")})});
  return *object_;
}

}  // namespace octavo::grammar
